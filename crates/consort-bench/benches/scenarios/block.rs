//! Threads that are in one situation for some time, and the figures of that time.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use consort_machine::usage::processor_time;
use serde_json::json;

use crate::{
    scenario::{Situation, Worker},
    waits::{Timer, Waits},
};

/// The settings of a block.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) length: Duration,
}

/// The figures of a block, or of several.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// Operations per second.
    rate: f64,
    /// The share of the operations that the busier half of the threads made (Dice and Kogan 2019,
    /// section 7.1.1): 0.5 is fair, 1 is unfair.
    fairness: f64,
    /// Nanoseconds of processor time for an operation.
    processor_ns: f64,
    waits: Waits,
}

/// The operations of a thread so far, on its own lines.
#[derive(Default)]
#[repr(align(128))]
struct Progress(AtomicU64);

/// Returns the share of the operations that the busier half of the threads made.
#[expect(clippy::cast_precision_loss, reason = "a share")]
fn fairness(mut operations: Vec<u64>) -> f64 {
    operations.sort_unstable_by(|one, other| other.cmp(one));
    let (half, all) = (operations.len() / 2, operations.iter().sum::<u64>());
    // Of an odd number of threads, half of the operations of the middle one count.
    let middle = if operations.len() % 2 == 1 { operations[half] as f64 / 2.0 } else { 0.0 };
    (operations[..half].iter().sum::<u64>() as f64 + middle) / all.max(1) as f64
}

/// Runs the threads once. Returns the operations of each, the time, the processor time, and the
/// waits.
fn run<S: Situation>(
    threads: usize,
    length: Duration,
    is_timed: bool,
) -> (Vec<u64>, Duration, Duration, Waits) {
    let situation = S::new(threads);
    let progress: Vec<Progress> = (0..threads).map(|_| Progress::default()).collect();
    let (is_over, barrier) = (AtomicBool::new(false), Barrier::new(threads + 1));
    thread::scope(|scope| {
        let (situation, is_over, barrier) = (&situation, &is_over, &barrier);
        let workers: Vec<_> = progress
            .iter()
            .enumerate()
            .map(|(thread, progress)| {
                scope.spawn(move || {
                    let timer = Timer::new(is_timed);
                    let random = thread as u64 + 1;
                    let mut worker = Worker { thread, done: 0, random, timer };
                    barrier.wait();
                    while !is_over.load(Relaxed) {
                        situation.operate(&mut worker, is_over);
                        worker.done += 1;
                        progress.0.store(worker.done, Relaxed);
                    }
                    worker.timer.waits
                })
            })
            .collect();
        barrier.wait();
        let (begun, used) = (Instant::now(), processor_time());
        thread::sleep(length);
        let operations = progress.iter().map(|one| one.0.load(Relaxed)).collect();
        let passed = begun.elapsed();
        let used = processor_time().zip(used).map(|(now, before)| now - before);
        situation.end(is_over);
        let mut waits = Waits::default();
        for worker in workers {
            waits.add_all(&worker.join().expect("no operation panics"));
        }
        (operations, passed, used.unwrap_or_default(), waits)
    })
}

/// Measures the operations, then the waits.
#[expect(clippy::cast_precision_loss, reason = "numbers for people")]
pub(crate) fn block<S: Situation>(threads: usize, setting: Setting) -> Block {
    let (operations, passed, used, _) = run::<S>(threads, setting.length, false);
    let (_, _, _, waits) = run::<S>(threads, setting.length, true);
    let all = operations.iter().sum::<u64>() as f64;
    Block {
        rate: all / passed.as_secs_f64(),
        fairness: fairness(operations),
        processor_ns: used.as_secs_f64() * 1e9 / all.max(1.0),
        waits,
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns a time as text.
#[expect(clippy::cast_precision_loss, reason = "a number for people")]
fn time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

impl Block {
    pub(crate) const HEADER: &'static str = "                  thousands/s  fairness  processor     \
                                             p50       p99     p99.9   longest";

    /// Returns the medians of blocks, and all their waits.
    pub(crate) fn median_of<'b>(blocks: impl Iterator<Item = &'b Self> + Clone) -> Self {
        let mut waits = Waits::default();
        blocks.clone().for_each(|block| waits.add_all(&block.waits));
        Self {
            rate: median(blocks.clone().map(|block| block.rate)),
            fairness: median(blocks.clone().map(|block| block.fairness)),
            processor_ns: median(blocks.map(|block| block.processor_ns)),
            waits,
        }
    }

    pub(crate) fn line(&self) -> String {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| time(self.waits.quantile_ns(share)));
        let longest = time(self.waits.longest_ns());
        let (rate, fairness, processor_ns) = (self.rate / 1e3, self.fairness, self.processor_ns);
        format!(
            "{rate:11.1}{fairness:10.2}{processor_ns:8.0} ns{p50:>10}{p99:>10}{p999:>10}{longest:>10}"
        )
    }

    pub(crate) fn json(&self, scenario: &str, row: &str, threads: usize, busy: usize) -> String {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| self.waits.quantile_ns(share));
        json!({
            "scenario": scenario,
            "lock": row,
            "threads": threads,
            "busy": busy,
            "operations_per_second": self.rate,
            "fairness_factor": self.fairness,
            "processor_ns": self.processor_ns,
            "p50_ns": p50,
            "p99_ns": p99,
            "p999_ns": p999,
            "longest_ns": self.waits.longest_ns(),
        })
        .to_string()
    }
}
