//! Measures all rows in turn.
//!
//! A round has a block of each row for each number of threads, in random order. Each block has new
//! threads and a new counter. So a round counts as a launch, and a confidence interval is computed
//! from the values of the rounds. A ratio compares two blocks of one round.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use consort_fabric::statistics::{Gain, Summary, launches, median};
use consort_machine::topology::Topology;

use super::{
    block::{Block, Setting, WINDOW},
    row::{REFERENCE, Row, Subject},
};
use crate::rng::Rng;

/// The shortest and the longest time of a block.
pub(super) const BLOCK: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];
/// The number of rounds for which there should be time in a comparison of all rows.
pub(super) const ROUNDS: u32 = 3;
/// The largest number of iterations between two operations at low load: some microseconds.
const LOW_BETWEEN: u64 = 20_000;

/// The settings of a measurement of all rows.
#[derive(Clone, Copy, Debug)]
pub struct Race<'r> {
    /// The compared subject.
    pub subject: Subject,
    /// The numbers of threads, not counting those of servers.
    pub threads: &'r [usize],
    /// The increments of an operation.
    pub increments: usize,
    /// The largest number of loop iterations between two operations of a thread.
    pub between: u64,
    /// The approximate measuring time.
    pub budget: Duration,
    /// Ends it with the current block once it is set.
    pub stop: &'r AtomicBool,
}

/// The results of all rows.
#[derive(Debug)]
pub struct Results {
    pub(super) subject: Subject,
    pub(super) cores: usize,
    pub(super) increments: usize,
    pub(super) between: u64,
    /// The time of a block.
    pub(super) length: Duration,
    pub(super) uncontended: Vec<Uncontended>,
    pub(super) contended: Vec<Contended>,
}

impl Results {
    /// Returns whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.uncontended.is_empty() && self.contended.is_empty()
    }
}

/// The time of an operation of a single thread, under one row.
#[derive(Debug)]
pub(super) struct Uncontended {
    pub(super) name: &'static str,
    pub(super) is_peer: bool,
    pub(super) ns: Summary,
    /// Relative to the time of the reference.
    pub(super) ratio: Option<Summary>,
}

/// The work of some threads under one row.
#[derive(Debug)]
pub(super) struct Contended {
    pub(super) name: &'static str,
    pub(super) is_peer: bool,
    pub(super) threads: usize,
    pub(super) is_pinned: bool,
    pub(super) mops: Summary,
    /// Operations relative to those of the first row, in blocks of the same rounds; `None` for too
    /// few rounds.
    pub(super) gain: Option<Gain>,
    /// Operations relative to those of the reference.
    pub(super) ratio: Option<Summary>,
    /// The fairness of windows, or of blocks if threads outnumber the cores.
    pub(super) fairness: Option<Fairness>,
    pub(super) full: Option<Latency>,
    pub(super) low: Option<Latency>,
}

/// The ratio of the most to the fewest operations of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fairness {
    pub(super) median: f64,
    pub(super) p90: f64,
    pub(super) count: usize,
}

impl Fairness {
    pub(super) fn of(mut ratios: Vec<f64>) -> Option<Self> {
        let count = ratios.len();
        let middle = (count > 0).then(|| median(&mut ratios))?; // sorts them
        Some(Self { median: middle, p90: ratios[(9 * count).div_ceil(10) - 1], count })
    }
}

/// The time of an operation, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Latency {
    pub(super) median_ns: f64,
    pub(super) p99_ns: f64,
}

impl Latency {
    /// Returns the medians over blocks.
    fn of<'b>(blocks: impl Iterator<Item = &'b Block>) -> Option<Self> {
        let (mut medians, mut p99s): (Vec<f64>, Vec<f64>) =
            blocks.filter_map(|block| block.latency_ns).unzip();
        let known = !medians.is_empty();
        known.then(|| Self { median_ns: median(&mut medians), p99_ns: median(&mut p99s) })
    }
}

/// One of the measurements of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// A single thread.
    Uncontended,
    /// This many threads, which pause between operations as requested.
    Full(usize),
    /// Threads that pause for long.
    Low(usize),
}

#[derive(Debug)]
enum Outcome {
    Uncontended(Vec<f64>),
    Block(Block),
}

#[derive(Debug)]
struct Sample {
    round: u64,
    load: Load,
    row: usize,
    value: Outcome,
}

impl Race<'_> {
    /// Measures, and reports the completed share to `show`.
    ///
    /// # Errors
    /// If the system refuses threads or cores, or a counter has lost operations.
    pub fn run(&self, show: impl Fn(f64)) -> Result<Results> {
        self.run_rows(&self.subject.rows(self.increments), &self.loads(), ROUNDS, show)
    }

    /// Measures these rows at these loads, in blocks for which there is time in this many rounds.
    ///
    /// # Errors
    /// If the system refuses threads or cores, or a counter has lost operations.
    pub(super) fn run_rows(
        &self,
        rows: &[&'static Row],
        loads: &[Load],
        rounds: u32,
        show: impl Fn(f64),
    ) -> Result<Results> {
        let blocks = u32::try_from(rows.len() * loads.len()).unwrap_or(u32::MAX);
        let length = (self.budget / (rounds * blocks)).clamp(BLOCK[0], BLOCK[1]);
        let samples = self.samples(rows, loads, length, show)?;
        let of_row = |load, row| {
            samples.iter().filter(move |sample| sample.load == load && sample.row == row)
        };
        let reference = rows.iter().position(|row| row.name == REFERENCE).unwrap_or(0);
        let ratio = |load, row| {
            let over = |sample: &Sample| {
                let mut others = of_row(load, reference);
                let other = others.find(|other| other.round == sample.round)?;
                Some(vec![sample.value.typical() / other.value.typical()])
            };
            let ratios: Vec<Vec<f64>> = of_row(load, row).filter_map(over).collect();
            launches::summary(&ratios)
        };
        let over_first = |load, row| {
            let pair = |sample: &Sample| {
                let mut firsts = of_row(load, 0);
                let first = firsts.find(|first| first.round == sample.round)?;
                // Times are the reciprocals of rates.
                Some(vec![(1.0 / first.value.typical(), 1.0 / sample.value.typical())])
            };
            let pairs: Vec<_> = of_row(load, row).filter_map(pair).collect();
            Gain::paired(&pairs, rows.len() - 1)
        };
        let uncontended = |(index, row): (usize, &&'static Row)| {
            let launches: Vec<Vec<f64>> =
                of_row(Load::Uncontended, index).map(|sample| sample.value.values()).collect();
            Some(Uncontended {
                name: row.name,
                is_peer: row.is_peer,
                ns: launches::summary(&launches)?,
                ratio: ratio(Load::Uncontended, index),
            })
        };
        let contended = |threads: usize, index: usize| {
            let of = |load| of_row(load, index).filter_map(|sample| sample.value.block());
            let blocks: Vec<&Block> = of(Load::Full(threads)).collect();
            let launches: Vec<Vec<f64>> = blocks.iter().map(|block| vec![block.mops]).collect();
            Some(Contended {
                name: rows[index].name,
                is_peer: rows[index].is_peer,
                threads,
                is_pinned: blocks.first()?.is_pinned,
                mops: launches::summary(&launches)?,
                gain: over_first(Load::Full(threads), index),
                ratio: ratio(Load::Full(threads), index),
                fairness: Fairness::of(
                    blocks.iter().flat_map(|block| block.fairness.iter().copied()).collect(),
                ),
                full: Latency::of(blocks.iter().copied()),
                low: Latency::of(of(Load::Low(threads))),
            })
        };
        let every = self.threads.iter().flat_map(|&threads| {
            let contended = &contended;
            (0..rows.len()).filter_map(move |index| contended(threads, index))
        });
        Ok(Results {
            subject: self.subject,
            cores: Topology::discover().usable_cores(),
            increments: self.increments,
            between: self.between,
            length,
            uncontended: rows.iter().enumerate().filter_map(uncontended).collect(),
            contended: every.collect(),
        })
    }

    fn loads(&self) -> Vec<Load> {
        let has_low = self.subject != Subject::Lock;
        let of = |&threads: &usize| {
            [Some(Load::Full(threads)), has_low.then_some(Load::Low(threads))].into_iter().flatten()
        };
        std::iter::once(Load::Uncontended).chain(self.threads.iter().flat_map(of)).collect()
    }

    fn samples(
        &self,
        rows: &[&Row],
        loads: &[Load],
        length: Duration,
        show: impl Fn(f64),
    ) -> Result<Vec<Sample>> {
        let (mut rng, begun) = (Rng(1), Instant::now());
        let (mut samples, mut order) = (Vec::new(), (0..rows.len()).collect::<Vec<usize>>());
        for round in 0.. {
            for &load in loads {
                rng.shuffle(&mut order);
                for &row in &order {
                    let value = self.value(rows[row], load, length, &mut rng);
                    // Relaxed: the flag publishes no other data.
                    if self.stop.load(Relaxed) {
                        return Ok(samples);
                    }
                    let value = value.with_context(|| format!("{} failed", rows[row].name))?;
                    samples.push(Sample { round, load, row, value });
                    // Each row is measured at least once, however long that takes.
                    let spent = begun.elapsed().as_secs_f64() / self.budget.as_secs_f64();
                    show(spent.min(samples.len() as f64 / (rows.len() * loads.len()) as f64));
                }
            }
            if begun.elapsed() >= self.budget {
                break;
            }
        }
        Ok(samples)
    }

    fn value(&self, row: &Row, load: Load, length: Duration, rng: &mut Rng) -> Result<Outcome> {
        let (threads, between, times_each) = match load {
            Load::Uncontended => {
                return (row.uncontended_ns)(self.increments, WINDOW).map(Outcome::Uncontended);
            }
            Load::Full(threads) => (threads, self.between, false),
            Load::Low(threads) => (threads, LOW_BETWEEN, true),
        };
        let setting = Setting {
            threads,
            increments: self.increments,
            between,
            length,
            times_each,
            has_server: row.has_server,
            seed: rng.below(u64::MAX / 2),
            stop: self.stop,
        };
        (row.block)(&setting).map(Outcome::Block)
    }
}

impl Outcome {
    /// Returns the time of an operation, or the operations per second.
    fn typical(&self) -> f64 {
        match self {
            Self::Uncontended(ns) => median(&mut ns.clone()),
            Self::Block(block) => block.mops,
        }
    }

    fn values(&self) -> Vec<f64> {
        match self {
            Self::Uncontended(ns) => ns.clone(),
            Self::Block(block) => vec![block.mops],
        }
    }

    const fn block(&self) -> Option<&Block> {
        match self {
            Self::Uncontended(_) => None,
            Self::Block(block) => Some(block),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn fairness_has_a_median_and_a_percentile() {
        let of = |count: u32| Fairness::of((1..=count).rev().map(f64::from).collect());
        assert_eq!(of(0), None);
        assert_eq!(of(1), Some(Fairness { median: 1.0, p90: 1.0, count: 1 }));
        assert_eq!(of(20), Some(Fairness { median: 10.5, p90: 18.0, count: 20 }));
    }

    #[test]
    fn every_row_is_measured_and_compared_with_the_reference() {
        let stop = AtomicBool::new(false);
        let race = Race {
            subject: Subject::Delegate,
            threads: &[1, 3],
            increments: 2,
            between: 50,
            budget: Duration::ZERO,
            stop: &stop,
        };
        let shares = RefCell::new(Vec::new());
        let results = race.run(|share| shares.borrow_mut().push(share)).unwrap();
        let shares = shares.into_inner();
        assert!(shares.is_sorted() && shares.last() == Some(&1.0), "{shares:?}");
        let rows = Subject::Delegate.rows(2).len();
        assert_eq!((results.uncontended.len(), results.contended.len()), (rows, 2 * rows));
        for one in &results.contended {
            assert!(one.mops.median > 0.0 && one.low.is_some() && one.full.is_some(), "{one:?}");
            let ratio = one.ratio.as_ref().unwrap().median;
            assert_eq!(ratio == 1.0, one.name == REFERENCE, "{one:?}");
        }
        stop.store(true, Relaxed);
        assert!(race.run(|_| ()).unwrap().is_empty());
    }
}
