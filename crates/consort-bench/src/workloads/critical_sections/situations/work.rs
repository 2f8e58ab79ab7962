//! The work of threads in each situation, for any lock.

use std::{
    array,
    hint::{black_box, spin_loop},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use super::{
    locks::{Data, Lock, ReadWriteLock},
    monitors::{Monitor, Shared},
    waits::Timer,
};
use crate::rng::Rng;

/// The state of a thread between its operations.
pub(super) struct Worker {
    pub(super) thread: usize,
    pub(super) done: u64,
    pub(super) rng: Rng,
    pub(super) timer: Timer,
}

/// The operations of threads on locks that they share.
pub(super) trait Work: Sync {
    fn new(threads: usize) -> Self
    where
        Self: Sized;
    /// Performs an operation, and times its wait. Returns early once the block is over.
    fn operate(&self, worker: &mut Worker, is_over: &AtomicBool);
    /// Ends the block, and all waits in it.
    fn end(&self, is_over: &AtomicBool) {
        is_over.store(true, Relaxed);
    }
}

/// [`Work`] as an object, so that only the loop of a thread is compiled for each lock.
pub(super) trait WorkLoop: Sync {
    /// Performs operations until the block is over, and shows their number.
    fn work(&self, worker: &mut Worker, shown: &AtomicU64, is_over: &AtomicBool);
    /// Ends the block, and all waits in it.
    fn end(&self, is_over: &AtomicBool);
}

impl<W: Work> WorkLoop for W {
    fn work(&self, worker: &mut Worker, shown: &AtomicU64, is_over: &AtomicBool) {
        while !is_over.load(Relaxed) {
            self.operate(worker, is_over);
            worker.done += 1;
            shown.store(worker.done, Relaxed);
        }
    }

    fn end(&self, is_over: &AtomicBool) {
        Work::end(self, is_over);
    }
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
pub(super) struct Short<L>(L);

impl<L: Lock> Work for Short<L> {
    fn new(_: usize) -> Self {
        Self(L::default())
    }

    #[inline(always)]
    fn operate(&self, worker: &mut Worker, _: &AtomicBool) {
        increment(&self.0, worker);
    }
}

/// A section that touches two lines, and 100 cycles between two sections.
pub(super) struct TwoLines<L>(L);

impl<L: Lock> Work for TwoLines<L> {
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
pub(super) struct Long<L>(L);

impl<L: Lock> Work for Long<L> {
    fn new(_: usize) -> Self {
        Self(L::default())
    }

    fn operate(&self, worker: &mut Worker, _: &AtomicBool) {
        long_section(&self.0, worker);
    }
}

/// Bursts of short sections, with a sleep between two bursts.
pub(super) struct Bursts<L>(L);

impl<L: Lock> Work for Bursts<L> {
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
pub(super) struct Hog<L>(L);

impl<L: Lock> Work for Hog<L> {
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
pub(super) struct Zipf<L> {
    locks: [L; LOCKS],
    /// The cumulated weights of the ranks.
    weights: [u64; LOCKS],
}

impl<L: Lock> Work for Zipf<L> {
    fn new(_: usize) -> Self {
        let mut sum = 0;
        let weights = array::from_fn(|rank| {
            sum += 1_000_000 / (rank as u64 + 1);
            sum
        });
        Self { locks: array::from_fn(|_| L::default()), weights }
    }

    fn operate(&self, worker: &mut Worker, _: &AtomicBool) {
        let drawn = worker.rng.below(self.weights[LOCKS - 1]);
        let rank = self.weights.partition_point(|weight| *weight <= drawn);
        let shift = usize::try_from(worker.done / SHIFT).unwrap_or(0);
        increment(&self.locks[(rank + shift) % LOCKS], worker);
    }
}

/// A reader-writer lock of which `WRITES` in 100 operations are writes.
pub(super) struct ReadWrite<L, const WRITES: u64>(L);

impl<L: ReadWriteLock, const WRITES: u64> Work for ReadWrite<L, WRITES> {
    fn new(_: usize) -> Self {
        Self(L::default())
    }

    #[inline(always)]
    fn operate(&self, worker: &mut Worker, _: &AtomicBool) {
        let is_write = worker.rng.below(100) < WRITES;
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
pub(super) struct PingPong<M>(Vec<M>);

impl<M: Monitor> Work for PingPong<M> {
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
pub(super) struct BoundedQueue<M>(M);

impl<M: Monitor> Work for BoundedQueue<M> {
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
pub(super) struct WakeUp<M>(Vec<M>);

impl<M: Monitor> Work for WakeUp<M> {
    fn new(threads: usize) -> Self {
        Self((0..threads.div_ceil(2)).map(|_| M::default()).collect())
    }

    fn operate(&self, worker: &mut Worker, is_over: &AtomicBool) {
        let monitor = &self.0[worker.thread / 2];
        if worker.thread.is_multiple_of(2) {
            thread::sleep(Duration::from_millis(1));
            let add = |shared: &mut Shared| {
                (shared.items, shared.added) = (1, Some(Instant::now()));
            };
            monitor.act(0, is_over, |shared| shared.items == 0, add);
        } else {
            let mut added = None;
            let remove = |shared: &mut Shared| {
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
