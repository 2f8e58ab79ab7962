//! Buffers that PEs of this process expose to far PEs.
//!
//! A far PE names an exposure, not an address. A thread that serves it copies short data under the
//! link's lock, and begins a transfer of long data under it; an exposure ends under that lock. So
//! nobody comes to a buffer after its exposure has ended, whatever far PEs ask for. Transfers that
//! have begun before may outlast it: `Job::end_far_exposures` waits for them before the call ends.

#![expect(unsafe_code, reason = "memory is kept with the exposure that vouches for it")]

use std::collections::HashMap;

use consort_fabric::Rank;

use super::packet::Exposure;
use crate::memory::region::Memory;

/// An exposed buffer.
pub(super) struct Exposed {
    pub(super) memory: Memory,
    /// Whether far PEs may write it.
    pub(super) is_target: bool,
}

// SAFETY: the memory is accessed under the link's lock while it is exposed, when other threads may
// access it by the rules at the head of `call::rendezvous`, and by transfers that have begun then,
// for which its owner's call waits.
unsafe impl Send for Exposed {}

/// All exposures to far PEs.
#[derive(Default)]
pub(super) struct Exposures(HashMap<Exposure, Exposed>);

impl Exposures {
    pub(super) fn add(&mut self, exposure: Exposure, exposed: Exposed) {
        self.0.insert(exposure, exposed);
    }

    /// Part of an exposed buffer; `None` if there is no such exposure, or it is shorter, or it may
    /// not be written.
    pub(super) fn part(
        &self,
        exposure: &Exposure,
        at: usize,
        bytes: usize,
        writes: bool,
    ) -> Option<Memory> {
        let Exposed { memory, is_target } = self.0.get(exposure)?;
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
