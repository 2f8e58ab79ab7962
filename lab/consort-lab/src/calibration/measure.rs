//! Measures the numbers of a description: single operations without contention.
//!
//! Between two cores, a round measures the transfer, loads of lines that the other core has
//! rewritten, a copy of such lines, and the transfer again. A round counts if both transfers agree.
//! Of the rounds that count, those of the more frequent class are kept. The results are their
//! medians.

use std::{io, time::Duration};

use consort_fabric::statistics::median;
use consort_machine::affinity::{CpuId, Pinned};
use consort_tuner::TransferClass;

use super::{
    latency::{clock_ghz, fetch_add_ns, load_ns, pull_load_ns},
    layout::Plan,
};
use consort_bench::limits::{combine_gbps, copy_gbps, pull_gbps, readings_agree, transfer_ns};

/// The numbers of bytes that are loaded line by line, and copied, from another core. They fit in
/// its second cache.
const LOADED_BYTES: usize = 64 << 10;
const COPIED_BYTES: usize = 256 << 10;
/// Sizes that exceed the caches.
const MEMORY_BYTES: usize = 128 << 20;
const MEMORY_COPY_BYTES: usize = 32 << 20;
/// The longest time of a reading that is not part of a round. A longer one would not be more exact,
/// and an interrupt waits for its end.
const LONGEST_READING: Duration = Duration::from_secs(1);
/// The time of one measurement of a round.
const READING: Duration = Duration::from_millis(10);
/// The smallest and the largest number of rounds for a distance. If none counts by then, the
/// machine is too unsteady.
const MIN_ROUNDS: usize = 8;
const MOST_ROUNDS: usize = 200;
/// The number of rounds that may be lost because a busy machine suspends a thread for a second.
const MOST_LOST: u32 = 20;

/// The measurements.
pub struct Measured {
    pub(super) ghz: f64,
    /// The time of a load that finds its line in each cache, from near to far.
    pub(super) caches_ns: Vec<f64>,
    pub(super) memory_ns: f64,
    pub(super) memory_copy_gbps: f64,
    pub(super) copy_gbps: f64,
    pub(super) combine_gbps: f64,
    pub(super) fetch_add_ns: f64,
    /// The measurements for each distance, from near to far.
    pub(super) between: Vec<Between>,
}

/// Times and bandwidths between two cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Between {
    pub(super) transfer_ns: f64,
    pub(super) load_ns: f64,
    pub(super) pull_gbps: f64,
    /// The number of rounds that count, and the number of all rounds.
    pub(super) rounds: (usize, usize),
}

/// Measures for about `budget`, and passes the completed share of the work to `show`.
///
/// # Errors
/// When a thread cannot be bound to its core, or the machine is too unsteady.
pub fn measure(plan: &Plan, budget: Duration, show: impl Fn(f64)) -> io::Result<Measured> {
    let steps = u32::try_from(plan.caches.len() + 6).unwrap_or(u32::MAX);
    let reading = (budget / 2 / steps).min(LONGEST_READING);
    let mut done = 0;
    let mut step = || {
        done += 1;
        show(f64::from(done) / f64::from(steps) / 2.0);
    };
    let mut measured = {
        let _pinned = plan.cpus.first().map(|&cpu| Pinned::new(cpu)).transpose()?;
        let mut caches_ns = Vec::new();
        let mut nearer_bytes = usize::MAX;
        for cache in &plan.caches {
            // At least twice the size of the nearer cache, so that it helps little. At most half of
            // this cache, so that other programs do not evict the lines.
            caches_ns.push(load_ns(nearer_bytes.saturating_mul(2).min(cache.bytes / 2), reading));
            nearer_bytes = cache.bytes;
            step();
        }
        let mut next = |value: f64| {
            step();
            value
        };
        Measured {
            ghz: next(clock_ghz(reading)),
            caches_ns,
            memory_ns: next(load_ns(MEMORY_BYTES, reading)),
            memory_copy_gbps: next(copy_gbps(MEMORY_COPY_BYTES, reading)),
            copy_gbps: next(copy_gbps(COPIED_BYTES, reading)),
            combine_gbps: next(combine_gbps(COPIED_BYTES, reading)),
            fetch_add_ns: next(fetch_add_ns(reading)),
            between: Vec::new(),
        }
    };
    let distances = plan.distances.len().max(1);
    let rounds = budget.as_nanos() / 2 / (4 * READING).as_nanos() / distances as u128;
    let rounds = usize::try_from(rounds).unwrap_or(MOST_ROUNDS).clamp(MIN_ROUNDS, MOST_ROUNDS);
    for (index, distance) in plan.distances.iter().enumerate() {
        let (mut all, mut lost) = (Vec::new(), 0);
        let between = loop {
            match one(distance.pairs[all.len() % distance.pairs.len()]) {
                Ok(round) => all.push(round),
                Err(error) if error.kind() == io::ErrorKind::TimedOut && lost < MOST_LOST => {
                    lost += 1;
                    continue;
                }
                Err(error) => return Err(error),
            }
            let part = all.len().min(rounds) as f64 / rounds as f64;
            show(0.5 + (index as f64 + part) / distances as f64 / 2.0);
            match of_rounds(&all) {
                Some(between) if all.len() >= rounds => break between,
                None if all.len() >= MOST_ROUNDS => {
                    return Err(io::Error::other(format!(
                        "the cores move too fast: in none of {MOST_ROUNDS} rounds was a transfer \
                         equally long at the start and the end"
                    )));
                }
                _ => {}
            }
        };
        measured.between.push(between);
    }
    Ok(measured)
}

/// One round: the transfers before and after it, and the measurements between them.
#[derive(Clone, Copy)]
struct Round {
    before_ns: f64,
    load_ns: f64,
    pull_gbps: f64,
    after_ns: f64,
}

fn one((a, b): (CpuId, CpuId)) -> io::Result<Round> {
    Ok(Round {
        before_ns: transfer_ns(a, b, READING)?,
        load_ns: pull_load_ns(a, b, LOADED_BYTES, READING)?,
        pull_gbps: pull_gbps(a, b, COPIED_BYTES, READING)?,
        after_ns: transfer_ns(a, b, READING)?,
    })
}

/// Returns the medians of the rounds that count, or `None` if no round counts.
fn of_rounds(all: &[Round]) -> Option<Between> {
    let steady = all.iter().filter(|round| readings_agree(round.before_ns, round.after_ns));
    let (near, far): (Vec<&Round>, Vec<&Round>) =
        steady.partition(|round| TransferClass::of(round.before_ns) == TransferClass::Near);
    let kept = if near.len() > far.len() { near } else { far };
    let of = |value: fn(&Round) -> f64| {
        median(&mut kept.iter().map(|round| value(round)).collect::<Vec<f64>>())
    };
    (!kept.is_empty()).then(|| Between {
        transfer_ns: of(|round| f64::midpoint(round.before_ns, round.after_ns)),
        load_ns: of(|round| round.load_ns),
        pull_gbps: of(|round| round.pull_gbps),
        rounds: (kept.len(), all.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(before_ns: f64, after_ns: f64) -> Round {
        Round { before_ns, load_ns: before_ns / 2.0, pull_gbps: 9.0, after_ns }
    }

    #[test]
    fn steady_rounds_of_the_frequent_class_count() {
        let all = [round(20.0, 22.0), round(200.0, 210.0), round(20.0, 200.0), round(180.0, 190.0)];
        let between = of_rounds(&all).unwrap();
        assert_eq!(between.rounds, (2, 4));
        assert_eq!((between.transfer_ns, between.load_ns), (195.0, 95.0));
        assert_eq!(of_rounds(&all[2..3]), None);
    }
}
