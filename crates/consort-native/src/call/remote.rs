//! A peer's memory.

#![expect(unsafe_code, reason = "an address may go to other threads")]

use consort_fabric::Rank;

use crate::memory::{extent::Extent, region::Memory};

/// A peer's memory on exposure.
#[derive(Debug)]
pub struct Remote {
    pub(super) at: *mut u8,
    pub(super) bytes: usize,
    pub(super) owner: Rank,
    pub(super) kind: RemoteKind,
    /// Of the buffer that it is a part of, where that may be written.
    pub(super) extent: Extent,
    /// The call that it was exposed in: the group, and the position in its window.
    pub(super) group: u64,
    pub(super) position: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemoteKind {
    /// A slice that nobody writes while it is exposed.
    Source,
    /// A slice that its owner and its peers may write.
    Target,
    /// Symmetric memory, which lives as long as the job.
    Symmetric,
    /// The same, reached without asking: there is nothing to detach.
    Reached,
}

// SAFETY: the address is only used through `Call`, by the rules at the top of this file.
unsafe impl Send for Remote {}

// SAFETY: a remote is read-only data.
unsafe impl Sync for Remote {}

impl Remote {
    /// `bytes` of a remote, checked.
    #[inline(always)]
    pub(super) fn part(&self, at: usize, bytes: usize) -> Memory {
        let inside = at.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(inside, "a copy must lie in what is exposed");
        let shared = match self.kind {
            RemoteKind::Source => None,
            RemoteKind::Target => Some(self.extent),
            RemoteKind::Symmetric | RemoteKind::Reached => Some(Extent::WORDS),
        };
        Memory { at: self.at.wrapping_add(at), bytes, shared }
    }
}
