//! Measures the locks of several situations in turn.
//!
//! A round has a block of each lock in each situation with each number of threads. Blocks of
//! different locks follow each other, in random order. So a round counts as a launch: figures are
//! medians over rounds, but quantiles are those of the waits of all rounds.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Error, Result};
use consort_fabric::statistics::{Summary, launches, median};
use consort_machine::topology::Topology;

use super::{
    super::race::{BLOCK, Fairness, ROUNDS},
    block::{Block, Setting},
    row::{REFERENCE, Row, Situation},
    waits::Waits,
};
use crate::{peers::native_locks::LoadedLocks, rng::Rng, workloads::busy::BusyProcesses};

/// The settings of a measurement.
#[derive(Debug)]
pub struct Race<'r> {
    /// The situations.
    pub situations: &'r [Situation],
    /// The numbers of threads; if there are none, the usual ones of each situation.
    pub threads: &'r [usize],
    /// The number of busy processes meanwhile.
    pub busy: usize,
    /// The libraries that cannot be loaded, and why. The others are loaded.
    pub absent: &'r [(LoadedLocks, Error)],
    /// The approximate measuring time.
    pub budget: Duration,
    /// Ends it with the current block once it is set.
    pub stop: &'r AtomicBool,
}

/// The results in all situations.
#[derive(Debug)]
pub struct Results {
    pub(super) cells: Vec<Cell>,
    pub(super) busy: usize,
    /// The time of a block.
    pub(super) length: Duration,
    /// The libraries without results, with a short reason and a complete one.
    pub(super) absent: Vec<(LoadedLocks, String, String)>,
}

impl Results {
    /// Returns whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns whether there is only one situation, with one number of threads.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.cells.len() == 1
    }
}

/// The results in one situation with one number of threads.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) situation: Situation,
    pub(super) threads: usize,
    /// The locks, the default first.
    pub(super) locks: Vec<Measured>,
}

/// The figures of a lock.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) name: &'static str,
    pub(super) is_peer: bool,
    /// Millions of operations per second.
    pub(super) mops: Summary,
    /// Relative to those of the reference.
    pub(super) ratio: Option<Summary>,
    pub(super) busier_half: f64,
    pub(super) fairness: Option<Fairness>,
    pub(super) processor_ns: Option<f64>,
    /// The waits of all blocks.
    pub(super) waits: Waits,
}

/// A block of a row.
struct Sample {
    round: u64,
    cell: usize,
    row: usize,
    block: Block,
}

impl Race<'_> {
    /// Measures, and reports the completed share to `show`.
    ///
    /// # Errors
    /// If the system refuses a busy process.
    pub fn run(&self, show: impl Fn(f64)) -> Result<Results> {
        let cores = Topology::discover().usable_cores();
        let of_situation = |&situation: &Situation| {
            let threads = match self.threads {
                [] => situation.threads(cores),
                threads => threads.to_vec(),
            };
            threads.into_iter().map(move |threads| (situation, threads))
        };
        let cells: Vec<_> = self.situations.iter().flat_map(of_situation).collect();
        let blocks: usize = cells.iter().map(|(situation, _)| self.rows(*situation).len()).sum();
        // A block measures twice.
        let parts = u32::try_from(2 * blocks).unwrap_or(u32::MAX).saturating_mul(ROUNDS);
        let length = (self.budget / parts.max(1)).clamp(BLOCK[0], BLOCK[1]);
        let _busy = BusyProcesses::start(self.busy)?;
        let samples = self.samples(&cells, blocks, length, show);
        let cell = |(index, &(situation, threads)): (usize, &(Situation, usize))| {
            let samples: Vec<&Sample> =
                samples.iter().filter(|sample| sample.cell == index).collect();
            let locks: Vec<Measured> = measured(&self.rows(situation), &samples);
            (!locks.is_empty()).then_some(Cell { situation, threads, locks })
        };
        let absent = self
            .absent
            .iter()
            .map(|(library, why)| (*library, why.to_string(), crate::units::in_a_line(why)));
        Ok(Results {
            cells: cells.iter().enumerate().filter_map(cell).collect(),
            busy: self.busy,
            length,
            absent: absent.collect(),
        })
    }

    /// Returns the locks of a situation that can be measured.
    fn rows(&self, situation: Situation) -> Vec<&'static Row> {
        let is_absent = |library| self.absent.iter().any(|(absent, _)| *absent == library);
        situation.rows().iter().filter(|row| !row.needs.is_some_and(is_absent)).collect()
    }

    fn samples(
        &self,
        cells: &[(Situation, usize)],
        blocks: usize,
        length: Duration,
        show: impl Fn(f64),
    ) -> Vec<Sample> {
        let (mut rng, begun, mut samples) = (Rng(1), Instant::now(), Vec::new());
        for round in 0.. {
            for (cell, &(situation, threads)) in cells.iter().enumerate() {
                let rows = self.rows(situation);
                let mut order: Vec<usize> = (0..rows.len()).collect();
                rng.shuffle(&mut order);
                for row in order {
                    let setting = Setting { threads, length, stop: self.stop };
                    let block = Block::measure(rows[row].create, &setting);
                    // Relaxed: the flag publishes no other data.
                    if self.stop.load(Relaxed) {
                        return samples;
                    }
                    samples.push(Sample { round, cell, row, block });
                    // Each lock is measured at least once, however long that takes.
                    let spent = begun.elapsed().as_secs_f64() / self.budget.as_secs_f64();
                    show(spent.min(samples.len() as f64 / blocks as f64));
                }
            }
            if begun.elapsed() >= self.budget {
                break;
            }
        }
        samples
    }
}

/// Returns the figures of each lock, by the samples of a cell.
fn measured(rows: &[&'static Row], samples: &[&Sample]) -> Vec<Measured> {
    let of_row = |row| samples.iter().filter(move |sample| sample.row == row);
    let reference = rows.iter().position(|row| row.name == REFERENCE);
    let measured = |(index, row): (usize, &&'static Row)| {
        let blocks = || of_row(index).map(|sample| &sample.block);
        let rates: Vec<Vec<f64>> = blocks().map(|block| vec![block.mops]).collect();
        let over = |sample: &&Sample| {
            let other = of_row(reference?).find(|other| other.round == sample.round)?;
            Some(vec![sample.block.mops / other.block.mops])
        };
        let ratios: Vec<Vec<f64>> = of_row(index).filter_map(over).collect();
        let middle = |mut values: Vec<f64>| (!values.is_empty()).then(|| median(&mut values));
        let mut waits = Waits::default();
        blocks().for_each(|block| waits.add_all(&block.waits));
        Some(Measured {
            name: row.name,
            is_peer: row.is_peer,
            mops: launches::summary(&rates)?,
            ratio: launches::summary(&ratios),
            busier_half: middle(blocks().map(|block| block.busier_half).collect())?,
            fairness: Fairness::of(blocks().flat_map(|block| block.fairness.clone()).collect()),
            processor_ns: middle(blocks().filter_map(|block| block.processor_ns).collect()),
            waits,
        })
    };
    rows.iter().enumerate().filter_map(measured).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use anyhow::anyhow;

    use super::*;

    #[test]
    fn each_lock_is_measured_next_to_the_reference() {
        let stop = AtomicBool::new(false);
        let absent = LoadedLocks::EVERY.map(|library| (library, anyhow!("not here")));
        let race = Race {
            situations: &[Situation::Read50, Situation::Queue],
            threads: &[2, 3],
            busy: 0,
            absent: &absent,
            budget: Duration::ZERO,
            stop: &stop,
        };
        let shares = RefCell::new(Vec::new());
        let results = race.run(|share| shares.borrow_mut().push(share)).unwrap();
        let shares = shares.into_inner();
        assert!(shares.is_sorted() && shares.last() == Some(&1.0), "{shares:?}");
        let cells: Vec<_> = results.cells.iter().map(|it| (it.situation, it.threads)).collect();
        let (read, queue) = (Situation::Read50, Situation::Queue);
        assert_eq!(cells, [(read, 2), (read, 3), (queue, 2), (queue, 3)]);
        assert!(!results.is_single() && results.absent.len() == LoadedLocks::EVERY.len());
        for cell in &results.cells {
            assert_eq!(cell.locks.len(), cell.situation.rows().len() - absent.len());
            assert!(!cell.locks[0].is_peer);
            for lock in &cell.locks {
                let ratio = lock.ratio.unwrap().median;
                assert_eq!(ratio == 1.0, lock.name == REFERENCE, "{lock:?}");
            }
        }
        stop.store(true, Relaxed);
        assert!(race.run(|_| ()).unwrap().is_empty());
    }
}
