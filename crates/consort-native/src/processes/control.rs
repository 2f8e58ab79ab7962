//! The control: what a launcher and its processes share before there is a job, and beside it.
//!
//! Nobody trusts what stands there to be an address; offsets and sizes are checked when they are
//! mapped.

#![expect(unsafe_code, reason = "says what may lie in a segment")]

use std::{
    mem::offset_of,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, SeqCst},
    },
};

use super::{end::End, reports::Reports};
use crate::segment::{page::PAGE, part::Flat};

/// The environment variable by which a launcher tells a process what it is: the number of the file,
/// the rank, the number of PEs, and the launcher's own process, with `:` between them.
pub(super) const VARIABLE: &str = "CONSORT_LAUNCH";

/// The most processes of a launcher.
pub(super) const MOST_PROCESSES: usize = 1024;
/// Launches that a process may be in, or behind, when another begins one.
const LAUNCHES: usize = 4;

/// The control, at the beginning of the file.
#[repr(C, align(128))]
pub(crate) struct Control {
    /// [`LAYOUT`], once the launcher has written all else.
    layout: AtomicU64,
    pub(super) pes: AtomicU32,
    /// The cores that the launcher may use.
    pub(super) cores: AtomicU32,
    /// What [`Binding`] says.
    pub(super) binding: AtomicU32,
    /// The offset in the file from which on nothing is.
    pub(super) end: AtomicU64,
    launches: [Launch; LAUNCHES],
    pub(super) reports: Reports,
    pub(super) processes: [Process; MOST_PROCESSES],
}

/// A launch: one program on all PEs. Its state is twice its number, and 1 more while its segment is
/// being made, or 2 more once it is there.
#[repr(C, align(64))]
pub(super) struct Launch {
    state: AtomicU64,
    /// The segment's place in the file.
    pub(super) at: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// A hash of the configuration, which all processes give alike.
    pub(super) settings: AtomicU64,
    /// The processes whose programs have ended well.
    pub(super) ended: AtomicU32,
    /// The processes that have left the segment.
    pub(super) left: AtomicU32,
}

/// A process, which runs one PE.
#[repr(C, align(64))]
pub(super) struct Process {
    /// Its number in the system: 0 before it has come.
    pub(super) pid: AtomicU32,
    /// The launches that it has begun, and of those the launches that it has ended.
    pub(super) begun: AtomicU32,
    pub(super) ended: AtomicU32,
    /// How it has ended, in a word; 0 if it has not.
    lost: AtomicU32,
    /// Why it cannot start: 1 more than the number of its report; 0 if it has made none.
    pub(super) report: AtomicU32,
    /// Whether it ran PEs of its own before it joined.
    pub(super) is_alone: AtomicU32,
}

// SAFETY: atomic integers and padding.
unsafe impl Flat for Control {}

/// The name of the control in errors.
pub(super) const OBJECT: &str = "what a launcher and its processes share";

/// Bytes of the control in the file.
pub(super) const BYTES: usize = size_of::<Control>().next_multiple_of(PAGE);

/// Differs between versions of this crate, and between layouts of the control.
const LAYOUT: u64 = {
    let text = env!("CARGO_PKG_VERSION").as_bytes();
    let mut hash = size_of::<Control>() as u64 ^ ((offset_of!(Control, processes) as u64) << 32);
    let mut at = 0;
    while at < text.len() {
        hash = (hash ^ text[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash | 1
};

/// What a process finds that begins a launch.
pub(super) enum Found {
    /// Nobody has made the segment: this process is to, and then to call [`Launch::is_made`].
    Nothing,
    /// The segment is there.
    Segment,
    /// Another process is making the segment, or still uses the place of this launch.
    Wait,
}

impl Control {
    /// Says that all but this has been written.
    pub(super) fn seal(&self) {
        self.layout.store(LAYOUT, SeqCst);
    }

    /// Whether a launcher of this version has made it.
    pub(super) fn is_sealed(&self) -> bool {
        self.layout.load(Acquire) == LAYOUT
    }

    /// The launch of this number, or the one that has its place.
    pub(super) fn launch(&self, number: u32) -> &Launch {
        &self.launches[number as usize % LAUNCHES]
    }

    /// The launches whose segments are there, with their numbers.
    pub(super) fn present(&self) -> impl Iterator<Item = (u32, &Launch)> {
        self.launches.iter().filter_map(|launch| {
            let state = launch.state.load(SeqCst);
            let is_there = state > 0 && state.is_multiple_of(2);
            is_there.then(|| (u32::try_from(state / 2 - 1).unwrap_or(u32::MAX), launch))
        })
    }
}

impl Launch {
    /// What a process that begins launch `number` finds.
    pub(super) fn begin(&self, number: u32, pes: u32) -> Found {
        let state = self.state.load(Acquire);
        let (making, made) = (2 * u64::from(number) + 1, 2 * u64::from(number) + 2);
        if state == made {
            return Found::Segment;
        }
        let is_free = state == 0 || self.left.load(Acquire) == pes;
        if state >= making || !is_free {
            return Found::Wait;
        }
        if self.state.compare_exchange(state, making, Acquire, Relaxed).is_err() {
            return Found::Wait;
        }
        self.ended.store(0, Relaxed);
        self.left.store(0, Relaxed);
        Found::Nothing
    }

    /// Says that the segment of launch `number` is there. Who looks for lost processes afterwards
    /// finds all that the launcher did not find a segment for.
    pub(super) fn is_made(&self, number: u32) {
        self.state.store(2 * u64::from(number) + 2, SeqCst);
    }
}

impl Process {
    /// Says how it has ended.
    pub(super) fn lose(&self, end: End) {
        self.lost.store(end.word(), SeqCst);
    }

    /// How it has ended, if it has.
    pub(super) fn lost(&self) -> Option<End> {
        End::of_word(self.lost.load(SeqCst))
    }

    /// Why launch `number` cannot go on without it, if it has ended too early for that.
    pub(super) fn is_missed(&self, number: u32) -> Option<String> {
        let end = self.lost()?;
        let (begun, ended) = (self.begun.load(SeqCst), self.ended.load(SeqCst));
        if ended > number {
            return None;
        }
        let when =
            if begun > number { "in the midst of its program" } else { "before it called Consort" };
        let tells = matches!(end, End::Killed(_));
        Some(if tells { format!("it {end}") } else { format!("it {end} {when}") })
    }
}
