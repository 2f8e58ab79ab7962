//! Buffers that PEs of this process expose to far PEs.
//!
//! A far PE names an exposure, not an address. The thread that serves a request copies short data,
//! or begins a transfer of long data, under the link's lock. An exposure also ends under that lock.
//! So no request of a far PE can access a buffer after its exposure has ended. Transfers that have
//! begun before may outlast the exposure: `Job::end_far_exposures` waits for them before the call
//! ends.

#![expect(unsafe_code, reason = "stores an address with the exposure that keeps it valid")]

use std::collections::HashMap;

use consort_fabric::Rank;

use super::packet::Exposure;
use crate::memory::region::Memory;

pub(super) struct ExposedBuffer {
    pub(super) memory: Memory,
    /// Whether far PEs may write to the buffer.
    pub(super) is_target: bool,
}

// SAFETY: while the memory is exposed, it is accessed under the link's lock; other threads may then
// access it by the rules at the beginning of `call::rendezvous`. It is also accessed by transfers
// that began then, and its owner's call waits for these.
unsafe impl Send for ExposedBuffer {}

#[derive(Default)]
pub(super) struct Exposures(HashMap<Exposure, ExposedBuffer>);

impl Exposures {
    pub(super) fn add(&mut self, exposure: Exposure, exposed: ExposedBuffer) {
        self.0.insert(exposure, exposed);
    }

    /// Returns a part of an exposed buffer. `None` if there is no such exposure, if it is too
    /// short, or if it must not be written.
    pub(super) fn part(
        &self,
        exposure: &Exposure,
        at: usize,
        bytes: usize,
        writes: bool,
    ) -> Option<Memory> {
        let ExposedBuffer { memory, is_target } = self.0.get(exposure)?;
        let is_inside = at.checked_add(bytes).is_some_and(|end| end <= memory.bytes);
        (is_inside && (*is_target || !writes)).then(|| memory.part(at, bytes))
    }

    /// Ends all exposures of a member of a group in its call at a window position.
    pub(super) fn end(&mut self, group: u64, owner: Rank, position: usize) {
        let is_other =
            |one: &Exposure| (one.group, one.owner, one.position) != (group, owner, position);
        self.0.retain(|one, _| is_other(one));
    }
}
