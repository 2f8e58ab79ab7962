//! A handle to a peer's memory.

#![expect(unsafe_code, reason = "an address may be sent to other threads")]

use consort_fabric::Rank;

use crate::memory::{extent::SharedExtent, region::Memory};

/// A handle to a peer's memory, attached or directly accessible.
#[derive(Debug)]
pub struct Remote {
    pub(super) at: *mut u8,
    pub(super) bytes: usize,
    pub(super) owner: Rank,
    pub(super) kind: RemoteKind,
    /// The extent of the whole buffer, if peers may write to it.
    pub(super) extent: SharedExtent,
    /// The call that exposed the buffer: the job, the group, and the call's window position.
    pub(super) job: u64,
    pub(super) group: u64,
    pub(super) position: usize,
    pub(super) exposure: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemoteKind {
    /// An exposed slice that no PE writes while it is exposed.
    Source,
    /// An exposed slice that its owner and its peers may write.
    Target,
    /// Exposed symmetric memory, which lives as long as the job.
    Symmetric,
    /// Symmetric memory that is accessed without an exposure, so there is nothing to detach.
    Reached,
    /// Memory that a far PE exposes.
    Far,
    /// Symmetric memory of a far PE. The address is its offset.
    FarHeap,
}

// SAFETY: the address is only used through `CallView`, by the rules at the beginning of
// `rendezvous`.
unsafe impl Send for Remote {}

// SAFETY: a remote is read-only data.
unsafe impl Sync for Remote {}

impl Remote {
    /// Returns whether the owner shares no memory with this process.
    #[inline(always)]
    pub(super) fn is_far(&self) -> bool {
        matches!(self.kind, RemoteKind::Far | RemoteKind::FarHeap)
    }

    /// Returns bytes `at..at + bytes` of the remote buffer. Panics if they reach beyond it.
    #[inline(always)]
    pub(super) fn part(&self, at: usize, bytes: usize) -> Memory {
        let inside = at.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(inside, "a copy must lie in the exposed buffer");
        let shared = match self.kind {
            RemoteKind::Source => None,
            RemoteKind::Target => Some(self.extent),
            RemoteKind::Symmetric | RemoteKind::Reached => Some(SharedExtent::WORDS),
            RemoteKind::Far | RemoteKind::FarHeap => panic!("far memory has no address"),
        };
        Memory { at: self.at.wrapping_add(at), bytes, shared }
    }
}
