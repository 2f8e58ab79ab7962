//! The situations, and the locks that each compares.

use consort_sync::locks::{Clh, Cna, Hapax, Mcs, TestAndSet, Ticket};

use super::{
    locks::{Data, Native, NativeReadWrite, Ours as OurLock, Served},
    monitors::{OfAbseil, OfNsync, OfPthread, Ours as OurMonitor, ParkingLot, Std, Usync},
    work::{
        BoundedQueue, Bursts, Hog, Long, PingPong, ReadWrite, Short, TwoLines, WakeUp, Work,
        WorkLoop, Zipf,
    },
};
use crate::peers::native_locks::{Abseil, LoadedLocks, Nsync, Pthread};

consort_fabric::named_enum! {
    /// A situation in which threads use locks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Situation {
        /// Short sections of more and more threads.
        Ramp = "ramp",
        /// Sections of a few instructions.
        Short = "short",
        /// Sections on two cache lines.
        TwoLines = "two-lines",
        /// Long sections.
        Long = "long",
        /// Short sections, then a sleep.
        Burst = "burst",
        /// Short sections, while one thread makes long ones.
        Hog = "hog",
        /// Many locks, of which some are popular.
        Zipf = "zipf",
        /// Almost no writes.
        Read99 = "read-99",
        /// Few writes.
        Read90 = "read-90",
        /// As many reads as writes.
        Read50 = "read-50",
        /// Threads that wake each other in turn.
        PingPong = "ping-pong",
        /// A bounded queue.
        Queue = "queue",
        /// A thread that sleeps.
        WakeUp = "wake-up",
    }
}

/// The lock of another library with which the others are compared.
pub(super) const REFERENCE: &str = "parking_lot";

impl Situation {
    /// Returns a description in a few words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Ramp => "as short, with 1 to 4 threads a core",
            Self::Short => "sections of a few instructions",
            Self::TwoLines => "sections on two cache lines, 100 cycles between them",
            Self::Long => "sections of 500 us",
            Self::Burst => "1000 short sections, then a sleep of 1 ms",
            Self::Hog => "short sections, while one thread makes sections of 500 us",
            Self::Zipf => "100 locks by a Zipf distribution; the most popular one changes",
            Self::Read99 => "99 reads to a write",
            Self::Read90 => "90 reads to 10 writes",
            Self::Read50 => "as many reads as writes",
            Self::PingPong => "pairs of threads wake each other by condition variables",
            Self::Queue => "a queue with room for 16 items, by condition variables",
            Self::WakeUp => "from a notification to the thread that slept",
        }
    }

    /// Returns the usual numbers of threads on a machine with this many cores.
    pub(super) fn threads(self, cores: usize) -> Vec<usize> {
        let mut threads = match self {
            Self::Ramp => vec![1, 2, cores, 2 * cores, 3 * cores, 4 * cores],
            _ => vec![4 * cores],
        };
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Returns the fewest threads that it needs.
    #[must_use]
    pub const fn fewest_threads(self) -> usize {
        match self {
            Self::PingPong | Self::Queue | Self::WakeUp => 2,
            _ => 1,
        }
    }

    /// Returns the locks that it compares. The first is the default.
    pub(super) const fn rows(self) -> &'static [Row] {
        match self {
            Self::Ramp | Self::Short => SHORT,
            Self::TwoLines => TWO_LINES,
            Self::Long => LONG,
            Self::Burst => BURST,
            Self::Hog => HOG,
            Self::Zipf => ZIPF,
            Self::Read99 => READ_99,
            Self::Read90 => READ_90,
            Self::Read50 => READ_50,
            Self::PingPong => PING_PONG,
            Self::Queue => QUEUE,
            Self::WakeUp => WAKE_UP,
        }
    }
}

/// A lock in a situation.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) is_peer: bool,
    /// The library that must be loaded.
    pub(super) needs: Option<LoadedLocks>,
    /// Creates the locks for this many threads.
    pub(super) create: fn(usize) -> Box<dyn WorkLoop>,
}

fn create<W: Work + 'static>(threads: usize) -> Box<dyn WorkLoop> {
    Box::new(W::new(threads))
}

const fn ours<W: Work + 'static>(name: &'static str) -> Row {
    Row { name, is_peer: false, needs: None, create: create::<W> }
}

const fn peer<W: Work + 'static>(name: &'static str) -> Row {
    Row { is_peer: true, ..ours::<W>(name) }
}

const fn loaded<W: Work + 'static>(library: LoadedLocks) -> Row {
    Row { needs: Some(library), ..peer::<W>(library.name()) }
}

macro_rules! of_mutexes {
    ($work:ident $(, $server:ty)?) => {
        &[
            ours::<$work<consort_sync::Mutex<Data>>>("Handoff"),
            ours::<$work<OurLock<TestAndSet>>>("TestAndSet"),
            ours::<$work<OurLock<Ticket>>>("Ticket"),
            ours::<$work<OurLock<Mcs>>>("Mcs"),
            ours::<$work<OurLock<Clh>>>("Clh"),
            ours::<$work<OurLock<Cna>>>("Cna"),
            ours::<$work<OurLock<Hapax>>>("Hapax"),
            $(ours::<$work<$server>>("Server"),)?
            peer::<$work<parking_lot::Mutex<Data>>>(REFERENCE),
            peer::<$work<parking_lot::FairMutex<Data>>>("FairMutex"),
            peer::<$work<std::sync::Mutex<Data>>>("std"),
            peer::<$work<usync::Mutex<Data>>>("usync"),
            peer::<$work<spin::Mutex<Data>>>("spin"),
            peer::<$work<mcslock::raw::yields::Mutex<Data>>>("mcslock"),
            peer::<$work<Native<Pthread>>>("pthread"),
            loaded::<$work<Native<Nsync>>>(LoadedLocks::Nsync),
            loaded::<$work<Native<Abseil>>>(LoadedLocks::Abseil),
        ]
    };
}

const SHORT: &[Row] = of_mutexes!(Short, Served);
const TWO_LINES: &[Row] = of_mutexes!(TwoLines, Served);
const LONG: &[Row] = of_mutexes!(Long, Served);
const BURST: &[Row] = of_mutexes!(Bursts, Served);
const HOG: &[Row] = of_mutexes!(Hog, Served);
// A hundred servers would be a hundred threads.
const ZIPF: &[Row] = of_mutexes!(Zipf);

macro_rules! of_read_write_locks {
    ($writes:literal) => {
        &[
            ours::<ReadWrite<consort_sync::RwLock<Data>, $writes>>("RwLock"),
            peer::<ReadWrite<parking_lot::RwLock<Data>, $writes>>(REFERENCE),
            peer::<ReadWrite<std::sync::RwLock<Data>, $writes>>("std"),
            peer::<ReadWrite<usync::RwLock<Data>, $writes>>("usync"),
            peer::<ReadWrite<spin::RwLock<Data>, $writes>>("spin"),
            peer::<ReadWrite<NativeReadWrite<Pthread>, $writes>>("pthread"),
            loaded::<ReadWrite<NativeReadWrite<Nsync>, $writes>>(LoadedLocks::Nsync),
            loaded::<ReadWrite<NativeReadWrite<Abseil>, $writes>>(LoadedLocks::Abseil),
        ]
    };
}

const READ_99: &[Row] = of_read_write_locks!(1);
const READ_90: &[Row] = of_read_write_locks!(10);
const READ_50: &[Row] = of_read_write_locks!(50);

macro_rules! of_monitors {
    ($work:ident) => {
        &[
            ours::<$work<OurMonitor>>("Condvar"),
            peer::<$work<ParkingLot>>(REFERENCE),
            peer::<$work<Std>>("std"),
            peer::<$work<Usync>>("usync"),
            peer::<$work<OfPthread>>("pthread"),
            loaded::<$work<OfNsync>>(LoadedLocks::Nsync),
            loaded::<$work<OfAbseil>>(LoadedLocks::Abseil),
        ]
    };
}

const PING_PONG: &[Row] = of_monitors!(PingPong);
const QUEUE: &[Row] = of_monitors!(BoundedQueue);
const WAKE_UP: &[Row] = of_monitors!(WakeUp);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_ends_at_four_threads_a_core() {
        let of = |situation: Situation| [1, 2, 16].map(|cores| situation.threads(cores));
        let expected: [&[usize]; 3] = [&[1, 2, 3, 4], &[1, 2, 4, 6, 8], &[1, 2, 16, 32, 48, 64]];
        assert_eq!(of(Situation::Ramp), expected);
        assert_eq!(of(Situation::Hog), [[4], [8], [64]]);
    }

    #[test]
    fn each_situation_compares_the_default_with_all_libraries() {
        for situation in Situation::EVERY {
            let rows = situation.rows();
            assert!(!rows[0].is_peer, "{situation}");
            let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
            for peer in [REFERENCE, "std", "usync", "pthread", "nsync", "absl::Mutex"] {
                assert!(names.contains(&peer), "{situation}: {peer}");
            }
            assert!(rows.iter().all(|row| row.needs.is_none_or(|it| it.name() == row.name)));
        }
    }
}
