//! Runs sessions and readings of limits in turn, until the figures are precise or time is up.
//!
//! A round is one reading of each limit at each size, then one session of all work in a separate
//! launch. Rounds are short compared with the run, so that figures and limits see the same changes
//! of the machine. The run ends when every work's median is within 2 % at 95 % confidence, when the
//! budget is spent, or when it is stopped. Each kind of work gets at least one block, even if the
//! run then exceeds its budget.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use consort::{Waiting, tune::Candidate};
use consort_fabric::statistics::launches;
use consort_tuner::{Race, Sample, TransferClass};

use super::{
    launch::{AlgorithmChoice, SessionError},
    session::{Block, Conditions, Session, Timing, by_launch},
    work::Work,
};
use crate::{
    environment::Switches,
    limits::{Limit, Limits},
};

/// The half-width of the interval of a precise median, as a share of the median.
const PRECISION: f64 = 0.02;
/// With fewer launches of one class, a median does not count as precise.
const MIN_LAUNCHES: usize = 8;
/// The number of rounds into which the budget is divided, unless they get too short or too long:
/// twice the number of launches that a class needs.
const ROUNDS: u32 = 16;
const SHORTEST_ROUND: Duration = Duration::from_millis(30);
const LONGEST_ROUND: Duration = Duration::from_millis(500);

/// The additional time in which a disturbed machine may complete a block of each work.
const PATIENCE: Duration = Duration::from_secs(10);

/// A measurement in rounds.
#[derive(Debug)]
pub struct Rounds<'r> {
    /// The session of one round. Its budget is that of the whole run.
    pub session: Session,
    /// The conditions of its calls.
    pub conditions: Conditions,
    /// The limits that are measured too.
    pub limits: &'r [Limit],
    /// The sizes at which limits are measured.
    pub sizes_bytes: &'r [usize],
    /// Ends the run with the current block once it is set.
    pub stop: &'r AtomicBool,
}

/// The outcome of all rounds.
#[derive(Debug)]
pub struct RoundsOutcome {
    /// The blocks of each work.
    pub timings: Vec<Timing>,
    /// The limits during the run.
    pub limits: Limits,
    /// How the PEs waited.
    pub waiting: Waiting,
    /// How often they lost their cores during the measurement, if each had one.
    pub switches: Switches,
    /// The time of all readings of limits.
    pub limits_time: Duration,
    /// The time of the longest launch.
    pub longest_launch: Duration,
}

impl Rounds<'_> {
    /// Measures. Calls `between` after each round with the share of the budget that is spent; the
    /// time of that call does not count. `between` returns whether the run may end before the
    /// budget.
    ///
    /// # Errors
    /// If a job cannot be launched or fails.
    pub fn run(&self, mut between: impl FnMut(f64) -> bool) -> Result<RoundsOutcome, SessionError> {
        let budget = self.session.budget;
        let round = (budget / ROUNDS).clamp(SHORTEST_ROUND.min(budget), LONGEST_ROUND);
        let session = Session { budget: round, ..self.session.clone() };
        let mut limits = Limits::new();
        let mut timings = vec![Timing::default(); session.work.len()];
        let mut switches = Switches::default();
        let (mut limits_time, mut longest_launch) = (Duration::ZERO, Duration::ZERO);
        let (start, mut uncounted) = (Instant::now(), Duration::ZERO);
        let mut launch = 0;
        loop {
            // Readings of large buffers take no more time than the launches.
            let begun = start.elapsed();
            if 2 * limits_time <= begun {
                limits.read(self.limits, self.sizes_bytes);
                limits_time += start.elapsed() - begun;
            }
            let begun = start.elapsed();
            let measured = session.run(&AlgorithmChoice::USUAL, &self.conditions, self.stop)?;
            for (all, new) in timings.iter_mut().zip(measured.timings) {
                all.add(launch, new);
            }
            switches.add(measured.switches);
            launch += 1;
            longest_launch = longest_launch.max(start.elapsed() - begun);
            let spent = start.elapsed() - uncounted;
            let may_end = between(spent.as_secs_f64() / budget.as_secs_f64().max(1e-9));
            uncounted = start.elapsed() - spent;
            // A launch that would end much later than the budget does not begin.
            let over = spent + longest_launch > budget + budget / 4 || spent >= budget;
            // Relaxed: the flag publishes no other data.
            if self.stop.load(Relaxed)
                || over && timings.iter().all(is_measured)
                || spent >= budget + PATIENCE
                || may_end && timings.iter().all(is_sure)
            {
                let waiting = measured.waiting;
                return Ok(RoundsOutcome {
                    timings,
                    limits,
                    waiting,
                    switches,
                    limits_time,
                    longest_launch,
                });
            }
        }
    }
}

/// Returns the blocks of one class; `None` is the class of blocks without a transfer.
pub fn of_class(timing: &Timing, class: Option<TransferClass>) -> Vec<Block> {
    timing.blocks.iter().copied().filter(|block| block.class() == class).collect()
}

/// Returns the sample of each work, by blocks of one class; `None` for a work without such blocks.
pub fn samples(timings: &[Timing]) -> Vec<Option<Sample>> {
    // A race identifies its candidates by name only.
    let names = (0..timings.len()).map(|index| Candidate::new(&index.to_string())).collect();
    let mut race = Race::new(names);
    let blocks = || timings.iter().flat_map(|timing| &timing.blocks);
    for launch in 0..blocks().map(|block| block.launch + 1).max().unwrap_or(0) {
        let of_launch = |timing: &Timing| {
            let blocks = timing.blocks.iter().filter(|block| block.launch == launch);
            Some(blocks.map(|block| block.for_tuner()).collect())
        };
        race.add(timings.iter().map(of_launch).collect());
    }
    race.samples()
}

/// Returns whether a work has a block that was kept, or cannot have any.
pub(super) fn is_measured(timing: &Timing) -> bool {
    timing.error.is_some() || !timing.blocks.is_empty()
}

/// Returns whether the medians of a work's classes are precise, for all classes with enough
/// launches, and whether there is such a class.
pub fn is_sure(timing: &Timing) -> bool {
    let classes = [None, Some(TransferClass::Near), Some(TransferClass::Far)];
    let sizable: Vec<Vec<Vec<f64>>> = classes
        .iter()
        .map(|&class| by_launch(&of_class(timing, class), |block| block.ns))
        .filter(|launches| launches.len() >= MIN_LAUNCHES)
        .collect();
    let sure = |blocks: &Vec<Vec<f64>>| {
        launches::summary(blocks).is_some_and(|summary| summary.precision() <= PRECISION)
    };
    timing.error.is_some() || (!sizable.is_empty() && sizable.iter().all(sure))
}

/// Returns the distinct sizes of `work`, ascending; barriers have none.
pub fn sizes_bytes(work: &[Work]) -> Vec<usize> {
    let mut sizes: Vec<usize> = work.iter().map(Work::bytes).filter(|&bytes| bytes > 0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use std::thread;

    use consort::{launch::Fabric, sync_modes::SyncModes, tune::Collective};

    use super::{super::session::Mode, *};
    use crate::query_json::sums;

    fn timing(transfer_ns: Option<f64>, times: impl Iterator<Item = f64>) -> Timing {
        // Three blocks per launch.
        let block = |(index, ns)| Block {
            ns,
            p99_ns: ns,
            transfer_ns,
            launch: index / 3,
            ..Block::default()
        };
        Timing { blocks: times.enumerate().map(block).collect(), ..Timing::default() }
    }

    #[test]
    fn a_median_is_sure_when_enough_blocks_agree() {
        let steady = |count: u32| (0..count).map(|i| 100.0 + f64::from(i % 3));
        assert!(is_sure(&timing(None, steady(30))));
        assert!(!is_sure(&timing(None, steady(19))));
        assert!(!is_sure(&timing(Some(20.0), (0..30).map(|i| 100.0 + f64::from(i * 10)))));
    }

    /// A round without work takes no time.
    #[test]
    fn work_between_rounds_is_not_charged_to_the_budget() {
        let session = Session {
            fabric: Fabric::Threads,
            pes: 1,
            waiting: None,
            work: Vec::new(),
            mode: Mode::Throughput,
            budget: Duration::from_millis(300),
        };
        let conditions = Conditions::default();
        let stop = AtomicBool::new(false);
        let rounds = Rounds { session, conditions, limits: &[], sizes_bytes: &[], stop: &stop };
        let mut shares = Vec::new();
        let between = |share| {
            thread::sleep(rounds.session.budget);
            shares.push(share);
            shares.len() == 2
        };
        rounds.run(between).unwrap();
        assert!(shares.len() == 2 && shares.iter().all(|share| *share < 1.0), "{shares:?}");
    }

    #[test]
    fn work_without_blocks_counts_as_measured_only_on_error() {
        let discarded = Timing { discarded: 3, ..Timing::default() };
        assert!(!is_measured(&discarded));
        assert!(is_measured(&Timing { error: Some("no algorithm".to_owned()), ..discarded }));
        assert!(is_measured(&timing(None, std::iter::once(1.0))));
    }

    #[test]
    fn stopped_run_ends_after_the_current_block() {
        let query = sums(Collective::Barrier, SyncModes::STRICT, 2, 0, false);
        let session = Session {
            fabric: Fabric::Threads,
            pes: 2,
            waiting: None,
            work: vec![Work::of_peer(&query, 0); 3],
            mode: Mode::Throughput,
            budget: Duration::from_secs(3600),
        };
        let (conditions, stop) = (Conditions::default(), AtomicBool::new(false));
        let rounds = Rounds { session, conditions, limits: &[], sizes_bytes: &[], stop: &stop };
        let collected = rounds
            .run(|_| {
                stop.store(true, Relaxed);
                false
            })
            .unwrap();
        assert!(collected.timings.iter().all(is_measured), "one round is complete");
        assert!(collected.longest_launch < Duration::from_secs(60));
        let none = rounds.run(|_| false).unwrap();
        assert!(none.timings.iter().all(|timing| timing.blocks.is_empty()), "{none:?}");
    }

    #[test]
    fn sample_counts_launches_of_one_class() {
        let of = |transfers_ns: &[f64]| {
            let mut all = Timing::default();
            for (launch, &transfer_ns) in transfers_ns.iter().enumerate() {
                all.add(launch, timing(Some(transfer_ns), std::iter::once(1.0)));
            }
            all
        };
        let samples = samples(&[of(&[20.0, 150.0, 150.0]), of(&[20.0, 150.0, 150.0]), of(&[])]);
        let sample = samples[0].unwrap();
        assert_eq!((sample.launches, sample.class), (2, Some(TransferClass::Far)));
        assert!(samples[2].is_none());
    }

    #[test]
    fn each_class_must_be_sure() {
        let mut both = timing(Some(20.0), (0..30).map(|_| 50.0));
        both.blocks.extend(timing(Some(150.0), (0..5).map(f64::from)).blocks);
        assert!(is_sure(&both), "two far launches do not count yet");
        both.blocks.extend(timing(Some(150.0), (0..30).map(f64::from)).blocks);
        assert!(!is_sure(&both));
        assert_eq!(of_class(&both, Some(TransferClass::Near)).len(), 30);
        assert_eq!(of_class(&both, Some(TransferClass::Far)).len(), 35);
        assert_eq!(of_class(&both, None).len(), 0);
    }
}
