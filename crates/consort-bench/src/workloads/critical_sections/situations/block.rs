//! Threads that are in one situation for some time, and the figures of that time.
//!
//! The threads work twice: first nothing is timed, which gives the rate, the shares of the threads
//! and the processor time; then each wait is timed.

use std::{
    sync::{Barrier, atomic::AtomicBool},
    thread,
    time::Duration,
};

use super::{
    super::block::{OperationCounts, ThreadProgress, fairness, watch},
    waits::{Timer, Waits},
    work::{WorkLoop, Worker},
};
use crate::rng::Rng;

/// The window in which the operations of threads are compared.
const WINDOW: Duration = Duration::from_millis(100);

/// The settings of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'s> {
    pub(super) threads: usize,
    pub(super) length: Duration,
    /// Ends the block.
    pub(super) stop: &'s AtomicBool,
}

/// The figures of a block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Millions of operations per second.
    pub(super) mops: f64,
    /// The share of the operations that the busier half of the threads made (Dice and Kogan 2019,
    /// section 7.1.1): 0.5 is fair, 1 is unfair.
    pub(super) busier_half: f64,
    /// The ratio of the most to the fewest operations of a thread in each window, or in the block
    /// if that is shorter.
    pub(super) fairness: Vec<f64>,
    /// Nanoseconds of processor time for an operation.
    pub(super) processor_ns: Option<f64>,
    pub(super) waits: Waits,
}

impl Block {
    /// Measures a block with locks that `create` makes.
    pub(super) fn measure(create: fn(usize) -> Box<dyn WorkLoop>, setting: &Setting<'_>) -> Self {
        let (looks, _) = run(&*create(setting.threads), false, setting);
        let (_, waits) = run(&*create(setting.threads), true, setting);
        let (first, last) = (&looks[0], &looks[looks.len() - 1]);
        let whole = last.since(first);
        let of_windows = looks.windows(2).filter(|two| two[1].after(&two[0]) >= WINDOW);
        let mut of_windows: Vec<f64> =
            of_windows.map(|two| fairness(&two[1].since(&two[0]))).collect();
        if of_windows.is_empty() {
            of_windows.push(fairness(&whole));
        }
        let operations = whole.iter().sum::<u64>().max(1) as f64;
        Self {
            mops: operations / last.after(first).as_secs_f64() / 1e6,
            busier_half: busier_half(whole),
            fairness: of_windows,
            processor_ns: last.used_since(first).map(|used| used.as_secs_f64() * 1e9 / operations),
            waits,
        }
    }
}

/// Returns the share of the operations that the busier half of the threads made.
fn busier_half(mut operations: Vec<u64>) -> f64 {
    operations.sort_unstable_by(|one, other| other.cmp(one));
    let (half, all) = (operations.len() / 2, operations.iter().sum::<u64>());
    // Of an odd number of threads, half of the operations of the middle one count.
    let middle = if operations.len() % 2 == 1 { operations[half] as f64 / 2.0 } else { 0.0 };
    (operations[..half].iter().sum::<u64>() as f64 + middle) / all.max(1) as f64
}

/// Runs the threads once. Returns their operations at the end of each window, and their waits.
fn run(
    work: &dyn WorkLoop,
    is_timed: bool,
    setting: &Setting<'_>,
) -> (Vec<OperationCounts>, Waits) {
    let progress: Vec<ThreadProgress> =
        (0..setting.threads).map(|_| ThreadProgress::default()).collect();
    let (is_over, barrier) = (AtomicBool::new(false), Barrier::new(setting.threads + 1));
    thread::scope(|scope| {
        let (progress, is_over, barrier) = (&progress, &is_over, &barrier);
        let spawn = |thread: usize| {
            let shown = &progress[thread];
            let (rng, timer) = (Rng(thread as u64 + 1), Timer::new(is_timed));
            let mut worker = Worker { thread, done: 0, rng, timer };
            scope.spawn(move || {
                barrier.wait();
                work.work(&mut worker, &shown.0, is_over);
                worker.timer.waits
            })
        };
        let workers: Vec<_> = (0..setting.threads).map(spawn).collect();
        barrier.wait();
        let looks = watch(progress, setting.length, WINDOW, setting.stop);
        work.end(is_over);
        let mut waits = Waits::default();
        for worker in workers {
            waits.add_all(&worker.join().expect("no operation panics"));
        }
        (looks, waits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::critical_sections::situations::row::Situation;

    #[test]
    fn busier_half_of_the_threads_has_at_least_half_of_the_operations() {
        assert_eq!(busier_half(vec![10, 10, 10, 10]), 0.5);
        assert_eq!(busier_half(vec![0, 40, 0, 0]), 1.0);
        assert_eq!(busier_half(vec![1, 2, 3]), 4.0 / 6.0);
        assert_eq!(busier_half(vec![5]), 0.5);
        assert_eq!(busier_half(vec![0, 0]), 0.0);
    }

    #[test]
    fn every_situation_has_operations_and_waits() {
        let never = AtomicBool::new(false);
        // With an odd number, one thread has no partner.
        for (situation, threads) in Situation::EVERY.into_iter().flat_map(|it| [(it, 2), (it, 3)]) {
            for row in situation.rows().iter().filter(|row| row.needs.is_none()) {
                let length = Duration::from_millis(4);
                let block = Block::measure(row.create, &Setting { threads, length, stop: &never });
                let Block { mops, busier_half, waits, fairness, .. } = &block;
                assert!(
                    *mops > 0.0 && *busier_half >= 0.49,
                    "{situation}, {}: {block:?}",
                    row.name
                );
                let quantiles = [0.5, 0.99, 0.999].map(|share| waits.quantile_ns(share));
                assert!(quantiles.is_sorted() && quantiles[2] <= waits.longest_ns());
                assert!(fairness.iter().all(|ratio| *ratio >= 1.0));
            }
        }
    }

    #[test]
    fn a_block_ends_when_it_is_stopped() {
        let stop = AtomicBool::new(true);
        let setting = Setting { threads: 2, length: Duration::from_secs(600), stop: &stop };
        let _ = Block::measure(Situation::Short.rows()[0].create, &setting);
    }
}
