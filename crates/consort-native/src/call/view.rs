//! One call's view of the job: the position of its inbox, and its buffers.

#![expect(unsafe_code, reason = "a call may be sent to other threads")]

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use consort_fabric::Rank;

use super::operands::Operands;
use crate::{
    inbox::line::LineWord, launch::job::Job, segment::reservation::Segment, state::header::PeState,
    team::group::Group,
};

/// One call's view of the job.
pub struct CallView<'c> {
    pub(super) job: &'c Job,
    pub(super) group: &'c Group,
    /// The rank in the group, like all ranks here.
    pub(super) rank: Rank,
    /// The window position: the call's number modulo the window.
    pub(super) position: usize,
    /// The words of all inboxes.
    pub(super) words: &'c [LineWord],
    pub(super) word: u64,
    pub(super) scratch: &'c Segment,
    pub(super) operands: &'c Operands<'c>,
    /// Reasons to check something at the end of the call: the kinds of buffers that this PE has
    /// exposed (`SOURCE`, `TARGET`, `SYMMETRIC`, `STAGED`), `UNSENT`, and an `UNDER_WAY` for each
    /// operation on far memory that has not ended.
    pub(super) marks: AtomicU32,
    /// The number of receives that have begun but not ended.
    pub(super) receiving: AtomicUsize,
    /// Whether an operation drives the call.
    pub(super) is_nonblocking: bool,
    /// The index of the word that the pending wait watches, or `NO_WORD` if it watches none.
    pub(super) watched: AtomicUsize,
    /// The value of that word when it was last polled.
    pub(super) seen: AtomicU64,
}

/// Marks in [`CallView::marks`].
pub(super) const SOURCE: u32 = 1;
pub(super) const TARGET: u32 = 2;
pub(super) const SYMMETRIC: u32 = 4;
/// The call uses the staged copy of the target.
pub(super) const STAGED: u32 = 8;

/// Packets for far PEs may still have to be sent.
pub(super) const UNSENT: u32 = 16;

/// An operation on far memory, which may access the call's buffers. The highest of the marks.
pub(super) const UNDER_WAY: u32 = 32;

/// The index that means no word.
pub(super) const NO_WORD: usize = usize::MAX;

// SAFETY: the buffers are borrowed for the call, and only the future that drives the call accesses
// them through it. The scratch memory belongs to this PE's endpoint, which makes one call at a
// time.
unsafe impl Send for CallView<'_> {}

// SAFETY: as above: only the one future that drives the call invokes its methods.
unsafe impl Sync for CallView<'_> {}

impl<'c> CallView<'c> {
    #[inline(always)]
    pub(crate) fn new(
        job: &'c Job,
        group: &'c Group,
        position: usize,
        word: u64,
        scratch: &'c Segment,
        operands: &'c Operands<'c>,
    ) -> Self {
        Self {
            job,
            group,
            rank: group.rank(),
            position,
            words: group.inboxes(),
            word,
            scratch,
            operands,
            marks: AtomicU32::new(0),
            receiving: AtomicUsize::new(0),
            is_nonblocking: false,
            watched: AtomicUsize::new(NO_WORD),
            seen: AtomicU64::new(0),
        }
    }

    pub(crate) fn set_nonblocking(&mut self) {
        self.is_nonblocking = true;
    }

    /// Returns a member's state that does not depend on the team.
    #[inline(always)]
    pub(super) fn state(&self, pe: Rank) -> &PeState {
        &self.job.states[self.group.in_world(pe).index()]
    }

    #[inline(always)]
    pub(super) fn heap(&self, pe: Rank) -> *mut u8 {
        self.job.heap(self.group.in_world(pe))
    }

    #[inline(always)]
    pub(super) fn buffer(&self, pe: Rank) -> *mut u8 {
        self.job.buffer(self.group.in_world(pe))
    }
}
