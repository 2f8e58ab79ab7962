//! Threads that use one counter for some time, and the number of operations of each.
//!
//! Each thread repeats an operation and then a random number of iterations of a loop. The thread
//! that began the block sleeps, and looks at the threads' operation counts at the end of each
//! window. If threads fit the cores, each is pinned to a core. A window counts if all threads
//! together lacked at most a tenth of a processor: then each thread had at least 90 % of its
//! processor.

use std::{
    hint::black_box,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use consort_fabric::statistics::Summary;
use consort_machine::{
    affinity::{self, CpuId},
    topology::Topology,
    usage::processor_time,
};

use super::counter::Counter;
use crate::rng::Rng;

pub(super) const WINDOW: Duration = Duration::from_millis(10);
/// In a window that counts, all threads together lack at most this share of a processor.
const MOST_LACKING: f64 = 0.1;
/// One in this many operations is timed at full load.
const TIMED: u64 = 64;
const MOST_TIMED: usize = 100_000;
/// How long a block without an operation continues, on a machine that has other work.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest numbers of operations and increments in a sample without contention.
const UNCONTENDED: usize = 2_000;
const MOST_INCREMENTS: usize = 2_000_000;

/// The settings of a block's measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'s> {
    pub(super) threads: usize,
    /// The number of increments in an operation.
    pub(super) increments: usize,
    /// The largest number of iterations between two operations.
    pub(super) between: u64,
    pub(super) length: Duration,
    /// Whether each operation is timed, rather than one in [`TIMED`].
    pub(super) times_each: bool,
    /// Whether the counter has a server, which takes a core.
    pub(super) has_server: bool,
    pub(super) seed: u64,
    /// Ends the block.
    pub(super) stop: &'s AtomicBool,
}

impl Setting<'_> {
    /// Returns the core of each thread, and last that of the server; `None` if they outnumber the
    /// cores.
    fn cpus(&self) -> Option<Vec<CpuId>> {
        Topology::discover().placement(self.threads + usize::from(self.has_server))
    }
}

/// The work of the threads in a block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Millions of operations per second.
    pub(super) mops: f64,
    /// The ratio of the most to the fewest operations of a thread: in each window that counts; or
    /// in the whole block, if none does or threads outnumber the cores.
    pub(super) fairness: Vec<f64>,
    /// The median of an operation and the 99th percentile, in nanoseconds.
    pub(super) latency_ns: Option<(f64, f64)>,
    /// Whether each thread had a core.
    pub(super) is_pinned: bool,
}

/// The progress that one thread publishes while it works, on its own lines.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct ThreadProgress(pub(super) AtomicU64);

/// The operations of all threads up to some moment.
pub(super) struct OperationCounts {
    at: Instant,
    /// The processor time of all threads.
    used: Option<Duration>,
    done: Vec<u64>,
}

impl OperationCounts {
    fn at(done: &[ThreadProgress]) -> Self {
        let used = processor_time();
        Self {
            at: Instant::now(),
            used,
            done: done.iter().map(|one| one.0.load(Relaxed)).collect(),
        }
    }

    /// Returns the operations of each thread since `before`.
    pub(super) fn since(&self, before: &Self) -> Vec<u64> {
        self.done.iter().zip(&before.done).map(|(now, before)| now - before).collect()
    }

    /// Returns the time since `before`.
    pub(super) fn after(&self, before: &Self) -> Duration {
        self.at.duration_since(before.at)
    }

    /// Returns the processor time of all threads since `before`.
    pub(super) fn used_since(&self, before: &Self) -> Option<Duration> {
        self.used.zip(before.used).map(|(now, before)| now.saturating_sub(before))
    }

    /// Returns whether `threads` threads had a processor each since `before`.
    fn counts(&self, before: &Self, threads: usize) -> bool {
        let passed = self.after(before).as_secs_f64();
        let used = self.used_since(before).map(|used| used.as_secs_f64());
        used.is_none_or(|used| used >= (threads as f64 - MOST_LACKING) * passed)
    }
}

/// Returns the ratio of the most to the fewest operations. A thread without operations counts as
/// having made one.
pub(super) fn fairness(done: &[u64]) -> f64 {
    let (most, fewest) = (done.iter().max(), done.iter().min());
    most.zip(fewest).map_or(1.0, |(most, fewest)| *most as f64 / (*fewest).max(1) as f64)
}

/// Measures a block.
///
/// # Errors
/// If the system refuses a thread or a core, or the counter has lost operations.
pub(super) fn block<C: Counter>(setting: &Setting<'_>) -> Result<Block> {
    let cpus = setting.cpus();
    let cpu = |index: usize| cpus.as_ref().and_then(|cpus| cpus.get(index).copied());
    let counter = C::new(setting.increments, setting.threads, cpu(setting.threads))?;
    let done: Vec<ThreadProgress> =
        (0..setting.threads).map(|_| ThreadProgress::default()).collect();
    let (is_over, barrier) = (AtomicBool::new(false), Barrier::new(setting.threads + 1));
    let (looks, times) = thread::scope(|scope| {
        let spawn = |index: usize| {
            let (counter, done, is_over, barrier) = (&counter, &done[index], &is_over, &barrier);
            let (cpu, seed) = (cpu(index), setting.seed + index as u64);
            let work = move || {
                let pinned = cpu.map(affinity::pin).transpose();
                barrier.wait();
                pinned.context("cannot pin a thread to its core")?;
                anyhow::Ok(use_counter(counter, setting, &done.0, Rng(seed), is_over))
            };
            scope.spawn(work)
        };
        let workers: Vec<_> = (0..setting.threads).map(spawn).collect();
        barrier.wait();
        let looks = watch(&done, setting.length, WINDOW, setting.stop);
        is_over.store(true, Relaxed);
        let join = |worker: thread::ScopedJoinHandle<'_, Result<Vec<f64>>>| {
            worker.join().expect("a thread returns its errors")
        };
        let times: Result<Vec<Vec<f64>>> = workers.into_iter().map(join).collect();
        (looks, times)
    });
    let times = times?.concat();
    let all: u64 = done.iter().map(|one| one.0.load(Relaxed)).sum();
    ensure!(
        counter.has_made(all),
        "{all} operations were made, but the counter shows another number"
    );
    let (first, last) = (&looks[0], &looks[looks.len() - 1]);
    let whole = last.since(first);
    let runs = setting.threads + usize::from(setting.has_server);
    let windows = looks.windows(2).filter(|two| two[1].counts(&two[0], runs));
    let of_windows: Vec<f64> = if cpus.is_some() {
        windows.map(|two| fairness(&two[1].since(&two[0]))).collect()
    } else {
        Vec::new()
    };
    // Threads that sleep while they wait never use their full share of processors.
    let fairness = if of_windows.is_empty() { vec![fairness(&whole)] } else { of_windows };
    let seconds = last.at.duration_since(first.at).as_secs_f64();
    Ok(Block {
        mops: whole.iter().sum::<u64>() as f64 / seconds / 1e6,
        fairness,
        latency_ns: (!times.is_empty()).then(|| {
            let summary = Summary::of(&times);
            (summary.median, summary.p99)
        }),
        is_pinned: cpus.is_some(),
    })
}

/// Looks at the threads at the end of each window. It starts when each thread has made an
/// operation, or after the length of a block, because it is not unfair that the system has not
/// started a thread yet. A block without an operation continues until there is one.
pub(super) fn watch(
    done: &[ThreadProgress],
    length: Duration,
    window: Duration,
    stop: &AtomicBool,
) -> Vec<OperationCounts> {
    let begun = Instant::now();
    // Relaxed: the flag publishes no other data.
    let is_stopped = || stop.load(Relaxed);
    let goes_on = |begun: Instant| begun.elapsed() < length && !is_stopped();
    while done.iter().any(|one| one.0.load(Relaxed) == 0) && goes_on(begun) {
        thread::sleep(WINDOW / 10);
    }
    let mut looks = vec![OperationCounts::at(done)];
    let begun = looks[0].at;
    while goes_on(begun) || is_idle(&looks) && begun.elapsed() < PATIENCE && !is_stopped() {
        thread::sleep(window.min(length.saturating_sub(begun.elapsed()).max(WINDOW)));
        looks.push(OperationCounts::at(done));
    }
    looks
}

/// Returns whether no thread has made an operation since the first look.
fn is_idle(looks: &[OperationCounts]) -> bool {
    let last = &looks[looks.len() - 1];
    last.since(&looks[0]).iter().all(|&operations| operations == 0)
}

/// Uses the counter until the block is over. Returns the times of the timed operations, in
/// nanoseconds.
fn use_counter<C: Counter>(
    counter: &C,
    setting: &Setting<'_>,
    shown: &AtomicU64,
    mut rng: Rng,
    is_over: &AtomicBool,
) -> Vec<f64> {
    let clock_ns = clock_ns();
    let (mut times, mut done) = (Vec::new(), 0);
    let mut operate = counter.operations();
    let timed = if setting.times_each { 1 } else { TIMED };
    while !is_over.load(Relaxed) {
        if done % timed == 0 && times.len() < MOST_TIMED {
            let begun = Instant::now();
            operate();
            times.push((begun.elapsed().as_nanos() as f64 - clock_ns).max(0.0));
        } else {
            operate();
        }
        done += 1;
        shown.store(done, Relaxed);
        for iteration in 0..rng.below(setting.between + 1) {
            black_box(iteration);
        }
    }
    times
}

/// Returns the time between two consecutive readings of the clock.
fn clock_ns() -> f64 {
    let mut gaps: Vec<f64> = (0..51).map(|_| Instant::now().elapsed().as_nanos() as f64).collect();
    consort_fabric::statistics::median(&mut gaps)
}

/// Times operations of a single thread, on its own core, for about `length`.
///
/// # Errors
/// If the system refuses a thread or a core.
pub(super) fn uncontended_ns<C: Counter>(increments: usize, length: Duration) -> Result<Vec<f64>> {
    let cpus = Topology::discover().placement(2);
    let (mine, other) = cpus.map(|cpus| (cpus[0], cpus[1])).unzip();
    let counter = C::new(increments, 1, other)?;
    let _pinned =
        mine.map(affinity::Pinned::new).transpose().context("cannot pin a thread to its core")?;
    let (mut samples, mut operate) = (Vec::new(), black_box(&counter).operations());
    let begun = Instant::now();
    let operations = (MOST_INCREMENTS / increments.max(1)).clamp(1, UNCONTENDED);
    // The first sample warms up.
    while samples.len() < 2 || begun.elapsed() < length {
        let begun = Instant::now();
        for _ in 0..operations {
            operate();
        }
        samples.push(begun.elapsed().as_nanos() as f64 / operations as f64);
    }
    samples.remove(0);
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use consort_sync::{Mutex, locks::Mcs};

    use super::*;
    use crate::workloads::critical_sections::counter::Numbers;

    #[test]
    fn fairness_is_most_over_fewest_operations() {
        assert_eq!(fairness(&[30, 10, 20]), 3.0);
        assert_eq!(fairness(&[30, 0]), 30.0);
        assert_eq!(fairness(&[7]), 1.0);
    }

    #[test]
    fn window_with_too_little_processor_time_is_dropped() {
        let at = Instant::now();
        let look = |ms, used| OperationCounts {
            at: at + Duration::from_millis(ms),
            used: Some(Duration::from_micros(used)),
            done: vec![],
        };
        assert!(look(10, 19_000).counts(&look(0, 0), 2));
        assert!(!look(10, 18_900).counts(&look(0, 0), 2));
        assert!(look(20, 19_000).counts(&look(10, 9_000), 1));
    }

    #[test]
    fn block_counts_operations_of_its_threads() {
        let stop = AtomicBool::new(false);
        let setting = Setting {
            threads: 3,
            increments: 4,
            between: 50,
            length: 3 * WINDOW,
            times_each: true,
            has_server: false,
            seed: 1,
            stop: &stop,
        };
        let measured = block::<Mutex<Numbers, Mcs>>(&setting).unwrap();
        assert!(measured.mops > 0.0 && measured.latency_ns.is_some(), "{measured:?}");
        assert!(measured.fairness.iter().all(|ratio| *ratio >= 1.0), "{measured:?}");
        let short = Setting { length: Duration::ZERO, ..setting };
        let measured = block::<Mutex<Numbers, Mcs>>(&short).unwrap();
        assert!(measured.mops > 0.0, "a block lasts until there is an operation: {measured:?}");
        assert!(!uncontended_ns::<Mutex<Numbers, Mcs>>(1, WINDOW).unwrap().is_empty());
    }

    #[test]
    fn lost_operations_are_an_error() {
        struct LossyCounter;
        impl Counter for LossyCounter {
            fn new(_: usize, _: usize, _: Option<CpuId>) -> Result<Self> {
                Ok(Self)
            }
            fn operate(&self) {}
            fn has_made(self, operations: u64) -> bool {
                operations == 0
            }
        }
        let stop = AtomicBool::new(true);
        let setting = Setting {
            threads: 1,
            increments: 1,
            between: 0,
            length: WINDOW,
            times_each: false,
            has_server: false,
            seed: 1,
            stop: &stop,
        };
        // If it is interrupted at once, it may have made none.
        let made = (0..100).find_map(|_| block::<LossyCounter>(&setting).err());
        assert!(made.expect("lost").to_string().contains("operations were made"));
    }
}
