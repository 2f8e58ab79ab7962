//! The state of a job, and of each of its PEs in any team.

#![expect(unsafe_code, reason = "declares which types a segment may hold")]

use std::sync::atomic::{AtomicU32, AtomicU64};

use super::{access_flag::AccessFlag, heartbeat::Heartbeat, poison::Poison};
use crate::segment::slice::SegmentItem;
use consort_machine::wait::{parker::Parker, sleepers::Sleepers};

/// The state of a job, at the beginning of its segment.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) poison: Poison,
    pub(crate) sleepers: Sleepers,
    /// When the job's clock began, in nanoseconds of the machine's clock.
    pub(crate) epoch_ns: AtomicU64,
    /// In a file that holds only this job, the offset at which the used part ends.
    pub(crate) file_end: AtomicU64,
    /// The latest time at which a PE was run for the first time, in nanoseconds since the job
    /// began.
    pub(crate) last_first_arrival_ns: AtomicU64,
    pub(crate) region: Region,
}

/// The parallel region that the PEs are in, on a separate line: one PE stores it in each region, and
/// the others read the rest of the header.
#[repr(C, align(128))]
pub(crate) struct Region {
    /// Its number, counted from 1; 0 outside of regions.
    pub(crate) number: AtomicU64,
}

/// The value of [`PeState::absent_since`] before any thread has run the PE.
pub(crate) const NEVER_PRESENT: u64 = 0;

/// The value of [`PeState::absent_since`] while a thread runs the PE.
pub(crate) const PRESENT: u64 = u64::MAX;

/// The published state of a PE, on separate lines.
#[repr(C, align(128))]
pub(crate) struct PeState {
    /// Raised while the PE copies memory that a peer has exposed. There is one flag for its
    /// blocking call and one for its nonblocking calls, which another thread may drive at the same
    /// time.
    pub(crate) access_flags: [AccessFlag; 2],
    pub(crate) parker: Parker,
    pub(crate) heartbeat: Heartbeat,
    /// 1 once the PE has an endpoint.
    pub(crate) has_endpoint: AtomicU32,
    /// The processor on which the PE last waited while another thread ran there, or slept, plus 1; 0
    /// if it has not.
    pub(crate) processor: AtomicU32,
    /// When the last thread that ran the PE left, in nanoseconds since the job began.
    /// [`NEVER_PRESENT`] if no thread has run the PE, [`PRESENT`] while a thread runs it.
    pub(crate) absent_since: AtomicU64,
    /// How often the PE has begun or ended a sleep, outside of calls, until a word of a heap
    /// changes. Odd during such a sleep, if only one thread at a time sleeps.
    pub(crate) word_sleeps: AtomicU64,
    /// How often the PE has looked at the word during such sleeps.
    pub(crate) word_looks: AtomicU64,
}

// SAFETY: atomic integers and padding. All zeros mean a job that has not failed and a clock without
// an epoch.
unsafe impl SegmentItem for Header {}
// SAFETY: atomic integers and padding.
unsafe impl SegmentItem for PeState {}
