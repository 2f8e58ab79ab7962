//! The control block: the state that a launcher and its processes share before and during a job, in
//! addition to the state of the job.
//!
//! No word in it is used as an address. Offsets and sizes are checked when they are mapped.

#![expect(unsafe_code, reason = "declares which types a segment may hold")]

use std::{
    mem::offset_of,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, SeqCst},
    },
};

use super::{process_end::ProcessEnd, reports::Reports};
use crate::segment::{page::PAGE, slice::SegmentItem};

/// The environment variable in which a launcher passes a process its role: the number of the file,
/// the rank, the number of PEs, and the launcher's process, separated by `:`.
pub(super) const VARIABLE: &str = "CONSORT_LAUNCH";

/// The maximum number of processes of a launcher.
pub(super) const MOST_PROCESSES: usize = 1024;
/// The number of launches that the control block holds. Processes may be in different launches, but
/// the fastest is fewer than this many ahead of the slowest.
const LAUNCHES: usize = 4;

/// The control block, at the beginning of the file.
#[repr(C, align(128))]
pub(crate) struct ControlBlock {
    /// [`LAYOUT`], after the launcher has written everything else.
    layout: AtomicU64,
    pub(super) pes: AtomicU32,
    /// The number of processors that the launcher may use.
    pub(super) processors: AtomicU32,
    /// The [`Binding`], encoded in a word.
    pub(super) binding: AtomicU32,
    /// The offset in the file at which the used part ends.
    pub(super) end: AtomicU64,
    launches: [LaunchSlot; LAUNCHES],
    pub(super) reports: Reports,
    pub(super) processes: [ProcessSlot; MOST_PROCESSES],
}

/// A launch: one program on all PEs. Its state is twice its number, plus 1 while its segment is
/// being made, or plus 2 when the segment exists.
#[repr(C, align(64))]
pub(super) struct LaunchSlot {
    state: AtomicU64,
    /// The offset of the segment in the file.
    pub(super) at: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// A hash of the configuration, which must be the same in all processes.
    pub(super) settings: AtomicU64,
    /// The number of processes that have left the segment.
    pub(super) left: AtomicU32,
}

/// A process that runs one PE.
#[repr(C, align(64))]
pub(super) struct ProcessSlot {
    /// The process's number in the system, or 0 before it has joined.
    pub(super) pid: AtomicU32,
    /// The number of launches that the process has begun, and of those that it has ended.
    pub(super) begun: AtomicU32,
    pub(super) ended: AtomicU32,
    /// How the process has ended, encoded in a word; 0 if it has not ended.
    lost: AtomicU32,
    /// Why the process cannot start: the number of its report plus 1; 0 if it has made none.
    pub(super) report: AtomicU32,
    /// Whether the process ran its own PEs before it joined.
    pub(super) is_alone: AtomicU32,
}

// SAFETY: atomic integers and padding.
unsafe impl SegmentItem for ControlBlock {}

/// The name of the control block in errors.
pub(super) const OBJECT: &str = "what a launcher and its processes share";

/// The size of the control block in the file, in bytes.
pub(super) const BYTES: usize = size_of::<ControlBlock>().next_multiple_of(PAGE);

/// A number that differs between versions of this crate, and between layouts of the control block.
pub(super) const LAYOUT: u64 = {
    let text = env!("CARGO_PKG_VERSION").as_bytes();
    let mut hash =
        size_of::<ControlBlock>() as u64 ^ ((offset_of!(ControlBlock, processes) as u64) << 32);
    let mut at = 0;
    while at < text.len() {
        hash = (hash ^ text[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash | 1
};

/// The state that a process finds when it begins a launch.
pub(super) enum LaunchState {
    /// The segment has not been made. This process must make it, and then call
    /// [`LaunchSlot::is_made`].
    Missing,
    /// The segment exists.
    Ready,
    /// Another process is making the segment, or still uses the place of this launch.
    Busy,
}

impl ControlBlock {
    /// Records that everything else has been written.
    pub(super) fn seal(&self) {
        self.layout.store(LAYOUT, SeqCst);
    }

    /// Returns whether a launcher of this version has written the control block.
    pub(super) fn is_sealed(&self) -> bool {
        self.layout.load(Acquire) == LAYOUT
    }

    /// Returns the launch with this number, or the launch that has its place.
    pub(super) fn launch(&self, number: u32) -> &LaunchSlot {
        &self.launches[number as usize % LAUNCHES]
    }

    /// Returns the launches whose segments exist, with their numbers.
    pub(super) fn present(&self) -> impl Iterator<Item = (u32, &LaunchSlot)> {
        self.launches.iter().filter_map(|launch| {
            let state = launch.state.load(SeqCst);
            let is_there = state > 0 && state.is_multiple_of(2);
            is_there.then(|| (u32::try_from(state / 2 - 1).unwrap_or(u32::MAX), launch))
        })
    }
}

impl LaunchSlot {
    /// Returns the state that a process finds when it begins launch `number`.
    pub(super) fn begin(&self, number: u32, pes: u32) -> LaunchState {
        let state = self.state.load(Acquire);
        let (making, made) = (2 * u64::from(number) + 1, 2 * u64::from(number) + 2);
        if state == made {
            return LaunchState::Ready;
        }
        let is_free = state == 0 || self.left.load(Acquire) == pes;
        if state >= making || !is_free {
            return LaunchState::Busy;
        }
        if self.state.compare_exchange(state, making, Acquire, Relaxed).is_err() {
            return LaunchState::Busy;
        }
        self.left.store(0, Relaxed);
        LaunchState::Missing
    }

    /// Records that the segment of launch `number` exists. A process that looks for lost processes
    /// afterwards finds all those that the launcher lost before it could find this segment.
    pub(super) fn is_made(&self, number: u32) {
        self.state.store(2 * u64::from(number) + 2, SeqCst);
    }
}

impl ProcessSlot {
    /// Records how the process has ended. The first record stays: a process that could not begin
    /// the job says so, and ends soon after.
    pub(super) fn lose(&self, end: ProcessEnd) {
        let _ = self.lost.compare_exchange(0, end.word(), SeqCst, SeqCst);
    }

    /// Returns how the process has ended, if it has.
    pub(super) fn lost(&self) -> Option<ProcessEnd> {
        ProcessEnd::of_word(self.lost.load(SeqCst))
    }

    /// Returns why launch `number` cannot continue without the process, if the process has ended
    /// too early for it.
    pub(super) fn is_missed(&self, number: u32) -> Option<String> {
        let end = self.lost()?;
        let (begun, ended) = (self.begun.load(SeqCst), self.ended.load(SeqCst));
        if ended > number {
            return None;
        }
        let when = match begun > number {
            true => "before the end of its program",
            false if self.pid.load(SeqCst) != 0 => "before it began the program",
            false => "before it called Consort",
        };
        let tells = matches!(end, ProcessEnd::Killed(_) | ProcessEnd::Withdrawn);
        Some(if tells { format!("it {end}") } else { format!("it {end} {when}") })
    }
}
