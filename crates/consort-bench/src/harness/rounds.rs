//! Sessions and slices of limits in turn, until the figures are sure or time is up.
//!
//! A round is one slice of each limit at each size, then one session of all work. Rounds are short
//! against the run, so that figures and limits see the same changes of the machine. The run ends
//! when every work's median is within 2 % at 95 % confidence, or with the budget.

use std::time::{Duration, Instant};

use consort::{Result, Waiting};
use consort_fabric::statistics::Summary;
use consort_tuner::TransferClass;

use super::{
    session::{Block, Conditions, Session, Timing},
    work::Work,
};
use crate::limits::{Limit, Limits};

/// Half the width of the interval of a median that is sure enough, as a share of it.
const PRECISION: f64 = 0.02;
/// Fewer blocks are not sure, however well they agree.
const MIN_BLOCKS: usize = 20;
/// Rounds that the budget is divided into, unless they get too short or too long.
const ROUNDS: u32 = 10;
const SHORTEST_ROUND: Duration = Duration::from_millis(30);
const LONGEST_ROUND: Duration = Duration::from_millis(500);

/// How long beyond the budget a disturbed machine is given to yield a block of each work.
const PATIENCE: Duration = Duration::from_secs(10);

/// A measurement in rounds.
#[derive(Debug)]
pub struct Rounds<'r> {
    /// The session of one round. Its budget counts for the whole run.
    pub session: Session,
    /// Under which conditions.
    pub conditions: Conditions,
    /// The limits beside it.
    pub limits: &'r [Limit],
    /// The sizes at which limits are read.
    pub sizes_bytes: &'r [usize],
}

/// The outcome of all rounds.
#[derive(Debug)]
pub struct Collected {
    /// One for each work.
    pub timings: Vec<Timing>,
    /// The limits of the same time.
    pub limits: Limits,
    /// How the PEs waited.
    pub waiting: Waiting,
}

impl Rounds<'_> {
    /// Measures, and tells `progress` after each round which share of the budget is spent.
    ///
    /// # Errors
    /// When a job cannot be launched or fails.
    pub fn run(&self, progress: impl Fn(f64)) -> Result<Collected> {
        let budget = self.session.budget;
        let round = (budget / ROUNDS).clamp(SHORTEST_ROUND.min(budget), LONGEST_ROUND);
        let session = Session { budget: round, ..self.session.clone() };
        let mut limits = Limits::new();
        let mut timings = vec![Timing::default(); session.work.len()];
        let start = Instant::now();
        loop {
            limits.read(self.limits, self.sizes_bytes);
            let measured = session.run_under(&self.conditions)?;
            for (all, new) in timings.iter_mut().zip(measured.timings) {
                all.blocks.extend(new.blocks);
                all.discarded += new.discarded;
                all.algorithm = new.algorithm;
                all.error = new.error;
            }
            let spent = start.elapsed();
            progress(spent.as_secs_f64() / budget.as_secs_f64().max(1e-9));
            let over = spent >= budget && timings.iter().all(is_measured);
            if over || spent >= budget + PATIENCE || timings.iter().all(is_sure) {
                return Ok(Collected { timings, limits, waiting: measured.waiting });
            }
        }
    }
}

/// The blocks of one class; without classes, all.
pub fn of_class(timing: &Timing, class: Option<TransferClass>) -> Vec<Block> {
    timing.blocks.iter().copied().filter(|block| block.class() == class).collect()
}

/// Whether a work has a block that counts, or cannot have any.
fn is_measured(timing: &Timing) -> bool {
    timing.error.is_some() || !timing.blocks.is_empty()
}

/// Whether the medians of a work's classes are sure: of each class with enough blocks to count,
/// and there is one.
fn is_sure(timing: &Timing) -> bool {
    let classes = [None, Some(TransferClass::Near), Some(TransferClass::Far)];
    let sizable: Vec<Vec<f64>> = classes
        .iter()
        .map(|&class| of_class(timing, class).iter().map(|block| block.ns).collect())
        .filter(|blocks: &Vec<f64>| blocks.len() >= MIN_BLOCKS)
        .collect();
    let sure = |blocks: &Vec<f64>| Summary::of(blocks).precision() <= PRECISION;
    timing.error.is_some() || (!sizable.is_empty() && sizable.iter().all(sure))
}

/// The sizes that occur among `work`, each once, rising; barriers have none.
pub fn sizes_bytes(work: &[Work]) -> Vec<usize> {
    let mut sizes: Vec<usize> = work.iter().map(Work::bytes).filter(|&bytes| bytes > 0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use consort::Error;

    use super::*;

    fn timing(transfer_ns: Option<f64>, times: impl Iterator<Item = f64>) -> Timing {
        let blocks = times.map(|ns| Block { ns, p99_ns: ns, transfer_ns }).collect();
        Timing { blocks, ..Timing::default() }
    }

    #[test]
    fn a_median_is_sure_when_enough_blocks_agree() {
        let steady = |count: u32| (0..count).map(|i| 100.0 + f64::from(i % 3));
        assert!(is_sure(&timing(None, steady(30))));
        assert!(!is_sure(&timing(None, steady(19))));
        assert!(!is_sure(&timing(Some(20.0), (0..30).map(|i| 100.0 + f64::from(i * 10)))));
    }

    #[test]
    fn a_work_without_blocks_is_not_measured_unless_it_cannot_be() {
        let discarded = Timing { discarded: 3, ..Timing::default() };
        assert!(!is_measured(&discarded));
        assert!(is_measured(&Timing { error: Some(Error::NoPes), ..discarded }));
        assert!(is_measured(&timing(None, std::iter::once(1.0))));
    }

    #[test]
    fn each_class_must_be_sure() {
        let mut both = timing(Some(20.0), (0..30).map(|_| 50.0));
        both.blocks.extend(timing(Some(150.0), (0..5).map(f64::from)).blocks);
        assert!(is_sure(&both), "five far blocks do not count yet");
        both.blocks.extend(timing(Some(150.0), (0..30).map(f64::from)).blocks);
        assert!(!is_sure(&both));
        assert_eq!(of_class(&both, Some(TransferClass::Near)).len(), 30);
        assert_eq!(of_class(&both, Some(TransferClass::Far)).len(), 35);
        assert_eq!(of_class(&both, None).len(), 0);
    }
}
