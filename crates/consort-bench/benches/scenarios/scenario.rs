//! The scenarios, and the locks that each compares.

use std::{
    array,
    hint::{black_box, spin_loop},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use consort_fabric::splitmix64;
use consort_sync::locks::{Clh, Cna, Hapax, Mcs, TestAndSet, Ticket};

use crate::{
    block::{Block, Setting, block},
    locks::{Data, Lock, Ours as OurLock, Pthread, ReadWriteLock, Served},
    monitors::{self, Monitor},
    waits::Timer,
};

/// The state of a thread between its operations.
pub(crate) struct Worker {
    pub(crate) thread: usize,
    pub(crate) done: u64,
    pub(crate) random: u64,
    pub(crate) timer: Timer,
}

impl Worker {
    fn below(&mut self, end: u64) -> u64 {
        splitmix64(&mut self.random) % end
    }
}

/// A situation in which threads use locks.
pub(crate) trait Situation: Sync {
    fn new(threads: usize) -> Self;
    /// Performs an operation, and times its wait. Returns early once the block is over.
    fn operate(&self, worker: &mut Worker, is_over: &AtomicBool);
    /// Ends all waits of a block.
    fn end(&self, is_over: &AtomicBool) {
        is_over.store(true, Relaxed);
    }
}

/// A lock that a scenario measures.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) block: fn(usize, Setting) -> Block,
}

/// A scenario with its rows.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) rows: &'static [Row],
}

/// The time of a long section.
const LONG: Duration = Duration::from_micros(500);
/// Operations in a burst, and the sleep after it.
const BURST: u64 = 1000;
const BETWEEN_BURSTS: Duration = Duration::from_millis(1);
/// Iterations of an empty loop that take about 100 cycles.
const HUNDRED_CYCLES: u64 = 100;
const LOCKS: usize = 100;
/// The most popular of many locks changes after this many operations of a thread.
const SHIFT: u64 = 10_000;
/// Items that fit a bounded queue.
const ROOM: usize = 16;

fn spin_for(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        spin_loop();
    }
}

fn increment<L: Lock>(lock: &L, worker: &mut Worker) {
    let begun = worker.timer.begin();
    let timer = &mut worker.timer;
    lock.with(|data| {
        timer.end(begun);
        data.first.0 += 1;
    });
}

fn long_section<L: Lock>(lock: &L, worker: &mut Worker) {
    let begun = worker.timer.begin();
    let timer = &mut worker.timer;
    lock.with(|data| {
        timer.end(begun);
        data.first.0 += 1;
        spin_for(LONG);
    });
}

/// A section of a few instructions, again and again.
struct Short<L>(L);

impl<L: Lock> Situation for Short<L> {
    fn new(_: usize) -> Self {
        Self(L::default())
    }

    #[inline(always)]
    fn operate(&self, worker: &mut Worker, _: &AtomicBool) {
        increment(&self.0, worker);
    }
}

/// A section that touches two lines, and 100 cycles between two sections.
struct TwoLines<L>(L);

impl<L: Lock> Situation for TwoLines<L> {
    fn new(_: usize) -> Self {
        Self(L::default())
    }

    #[inline(always)]
    fn operate(&self, worker: &mut Worker, _: &AtomicBool) {
        let begun = worker.timer.begin();
        let timer = &mut worker.timer;
        self.0.with(|data: &mut Data| {
            timer.end(begun);
            data.first.0 += 1;
            data.second.0 += 1;
        });
        for iteration in 0..HUNDRED_CYCLES {
            black_box(iteration);
        }
    }
}

/// Sections of 500 us.
struct Long<L>(L);

impl<L: Lock> Situation for Long<L> {
    fn new(_: usize) -> Self {
        Self(L::default())
    }

    fn operate(&self, worker: &mut Worker, _: &AtomicBool) {
        long_section(&self.0, worker);
    }
}

/// Bursts of short sections, with a sleep between two bursts.
struct Bursts<L>(L);

impl<L: Lock> Situation for Bursts<L> {
    fn new(_: usize) -> Self {
        Self(L::default())
    }

    fn operate(&self, worker: &mut Worker, _: &AtomicBool) {
        increment(&self.0, worker);
        if worker.done % BURST == BURST - 1 {
            thread::sleep(BETWEEN_BURSTS);
        }
    }
}

/// Thread 0 makes long sections, the others short ones.
struct Hog<L>(L);

impl<L: Lock> Situation for Hog<L> {
    fn new(_: usize) -> Self {
        Self(L::default())
    }

    fn operate(&self, worker: &mut Worker, _: &AtomicBool) {
        if worker.thread == 0 {
            long_section(&self.0, worker);
        } else {
            increment(&self.0, worker);
        }
    }
}

/// 100 locks, chosen by a Zipf distribution (exponent 1) whose most popular lock changes.
struct Many<L> {
    locks: [L; LOCKS],
    /// The cumulated weights of the ranks.
    weights: [u64; LOCKS],
}

impl<L: Lock> Situation for Many<L> {
    fn new(_: usize) -> Self {
        let mut sum = 0;
        let weights = array::from_fn(|rank| {
            sum += 1_000_000 / (rank as u64 + 1);
            sum
        });
        Self { locks: array::from_fn(|_| L::default()), weights }
    }

    fn operate(&self, worker: &mut Worker, _: &AtomicBool) {
        let drawn = worker.below(self.weights[LOCKS - 1]);
        let rank = self.weights.partition_point(|weight| *weight <= drawn);
        let shift = usize::try_from(worker.done / SHIFT).unwrap_or(0);
        increment(&self.locks[(rank + shift) % LOCKS], worker);
    }
}

/// A reader-writer lock of which `WRITES` in 100 operations are writes.
struct ReadWrite<L, const WRITES: u64>(L);

impl<L: ReadWriteLock, const WRITES: u64> Situation for ReadWrite<L, WRITES> {
    fn new(_: usize) -> Self {
        Self(L::default())
    }

    #[inline(always)]
    fn operate(&self, worker: &mut Worker, _: &AtomicBool) {
        let is_write = worker.below(100) < WRITES;
        let begun = worker.timer.begin();
        let timer = &mut worker.timer;
        if is_write {
            self.0.write(|data| {
                timer.end(begun);
                data.first.0 += 1;
            });
        } else {
            let read = self.0.read(|data| {
                timer.end(begun);
                data.first.0
            });
            black_box(read);
        }
    }
}

/// Pairs of threads that wake each other by condition variables.
struct PingPong<M>(Vec<M>);

impl<M: Monitor> Situation for PingPong<M> {
    fn new(threads: usize) -> Self {
        Self((0..threads.div_ceil(2)).map(|_| M::default()).collect())
    }

    fn operate(&self, worker: &mut Worker, is_over: &AtomicBool) {
        let side = worker.thread % 2;
        let begun = worker.timer.begin();
        let timer = &mut worker.timer;
        self.0[worker.thread / 2].act(
            side,
            is_over,
            |shared| shared.items == side,
            |shared| {
                timer.end(begun);
                shared.items = 1 - side;
            },
        );
    }

    fn end(&self, is_over: &AtomicBool) {
        self.0.iter().for_each(|monitor| monitor.end(is_over));
    }
}

/// A queue with room for few items: even threads add, odd ones remove.
struct Bounded<M>(M);

impl<M: Monitor> Situation for Bounded<M> {
    fn new(_: usize) -> Self {
        Self(M::default())
    }

    fn operate(&self, worker: &mut Worker, is_over: &AtomicBool) {
        let begun = worker.timer.begin();
        let (side, timer) = (worker.thread % 2, &mut worker.timer);
        let is_ready = |items| if side == 0 { items < ROOM } else { items > 0 };
        self.0.act(
            side,
            is_over,
            |shared| is_ready(shared.items),
            |shared| {
                timer.end(begun);
                // After the end of the block there may be no item, or no room.
                let items =
                    if side == 0 { shared.items + 1 } else { shared.items.saturating_sub(1) };
                shared.items = items;
            },
        );
    }

    fn end(&self, is_over: &AtomicBool) {
        self.0.end(is_over);
    }
}

/// Pairs: one thread sleeps for a millisecond and notifies, the other one wakes. The wait is the
/// time from the notification until the other thread has the data.
struct WakeUp<M>(Vec<M>);

impl<M: Monitor> Situation for WakeUp<M> {
    fn new(threads: usize) -> Self {
        Self((0..threads.div_ceil(2)).map(|_| M::default()).collect())
    }

    fn operate(&self, worker: &mut Worker, is_over: &AtomicBool) {
        let monitor = &self.0[worker.thread / 2];
        if worker.thread.is_multiple_of(2) {
            thread::sleep(Duration::from_millis(1));
            let add = |shared: &mut monitors::Shared| {
                (shared.items, shared.added) = (1, Some(Instant::now()));
            };
            monitor.act(0, is_over, |shared| shared.items == 0, add);
        } else {
            let mut added = None;
            let remove = |shared: &mut monitors::Shared| {
                (shared.items, added) = (0, shared.added.take());
            };
            monitor.act(1, is_over, |shared| shared.items == 1, remove);
            let begun = worker.timer.begin().and(added);
            worker.timer.end(begun);
        }
    }

    fn end(&self, is_over: &AtomicBool) {
        self.0.iter().for_each(|monitor| monitor.end(is_over));
    }
}

const fn row<S: Situation>(name: &'static str) -> Row {
    Row { name, block: block::<S> }
}

macro_rules! of_mutexes {
    ($situation:ident) => {
        &[
            row::<$situation<consort_sync::Mutex<Data>>>("Handoff, default"),
            row::<$situation<OurLock<TestAndSet>>>("TestAndSet"),
            row::<$situation<OurLock<Ticket>>>("Ticket"),
            row::<$situation<OurLock<Mcs>>>("Mcs"),
            row::<$situation<OurLock<Clh>>>("Clh"),
            row::<$situation<OurLock<Cna>>>("Cna"),
            row::<$situation<OurLock<Hapax>>>("Hapax"),
            row::<$situation<Served>>("Server, default"),
            row::<$situation<parking_lot::Mutex<Data>>>("parking_lot"),
            row::<$situation<parking_lot::FairMutex<Data>>>("parking_lot Fair"),
            row::<$situation<std::sync::Mutex<Data>>>("std"),
            row::<$situation<usync::Mutex<Data>>>("usync"),
            row::<$situation<spin::Mutex<Data>>>("spin"),
            row::<$situation<mcslock::raw::yields::Mutex<Data>>>("mcslock"),
            row::<$situation<Pthread>>("pthread_mutex"),
        ]
    };
}

macro_rules! of_read_write_locks {
    ($writes:literal) => {
        &[
            row::<ReadWrite<consort_sync::RwLock<Data>, $writes>>("consort_sync"),
            row::<ReadWrite<parking_lot::RwLock<Data>, $writes>>("parking_lot"),
            row::<ReadWrite<std::sync::RwLock<Data>, $writes>>("std"),
            row::<ReadWrite<usync::RwLock<Data>, $writes>>("usync"),
            row::<ReadWrite<spin::RwLock<Data>, $writes>>("spin"),
        ]
    };
}

macro_rules! of_monitors {
    ($situation:ident) => {
        &[
            row::<$situation<monitors::Ours>>("consort_sync"),
            row::<$situation<monitors::ParkingLot>>("parking_lot"),
            row::<$situation<monitors::Std>>("std"),
            row::<$situation<monitors::Usync>>("usync"),
        ]
    };
}

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "short", what: "sections of a few instructions", rows: of_mutexes!(Short) },
    Scenario {
        name: "two-lines",
        what: "sections on two lines, 100 cycles between them",
        rows: of_mutexes!(TwoLines),
    },
    Scenario { name: "long", what: "sections of 500 us", rows: of_mutexes!(Long) },
    Scenario {
        name: "bursts",
        what: "1000 short sections, then a sleep of 1 ms",
        rows: of_mutexes!(Bursts),
    },
    Scenario {
        name: "hog",
        what: "one thread makes sections of 500 us, the others short ones",
        rows: of_mutexes!(Hog),
    },
    Scenario {
        name: "many",
        what: "100 locks by a Zipf distribution whose most popular lock changes",
        rows: of_mutexes!(Many),
    },
    Scenario { name: "read-99", what: "99 reads to a write", rows: of_read_write_locks!(1) },
    Scenario { name: "read-90", what: "90 reads to 10 writes", rows: of_read_write_locks!(10) },
    Scenario { name: "read-50", what: "as many reads as writes", rows: of_read_write_locks!(50) },
    Scenario {
        name: "ping-pong",
        what: "pairs of threads wake each other by condition variables",
        rows: of_monitors!(PingPong),
    },
    Scenario {
        name: "bounded",
        what: "a queue with room for 16 items, by condition variables",
        rows: of_monitors!(Bounded),
    },
    Scenario {
        name: "wake-up",
        what: "from a notification to the thread that slept",
        rows: of_monitors!(WakeUp),
    },
];
