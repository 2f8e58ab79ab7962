//! The tuner's workbench: candidates, timed in turn, in several launches.
//!
//! All modes are timed by throughput: calls in a row on one buffer. This is the time of calls in a
//! loop, and only this measurement shows the gain of Loose calls. Strict calls in a row cannot
//! overlap, so this hides none of their time. An ordered reduction is timed with sums, because its
//! class determines which algorithms may serve it, but not the time per element.
//!
//! A Strict operation contains a barrier. During measurement, it is the fastest barrier measured
//! for the team so far, even if other wisdom exists.
//!
//! If the cores moved between near and far during a measurement, only the blocks of one class
//! count. A block does not count if other programs took a core from its PEs. If the PEs share
//! cores, the blocks of a launch do not count if other programs were ready to run both before and
//! after it.

use std::{
    collections::HashMap,
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use consort::{
    launch::Fabric,
    sync_modes::{SyncMode, SyncModes},
    tune::{Algorithms, Arrival, Candidate, Collective, Query},
};
use consort_fabric::{CallSpec, statistics::median};
use consort_tuner::{Catalog, Measurements, Revisions, Sample, Selector, Wisdom, Workbench};

use super::{
    launch::{AlgorithmChoice, SessionError},
    rounds::{is_measured, samples},
    session::{Block, Conditions, Mode, Session, Timing},
    values,
    work::Work,
};
use crate::environment::{Switches, cores_stay_idle, others_run};

/// The number of launches of a measurement, as far as its budget allows.
const LAUNCHES: u32 = 8;

/// The workbench of this machine, for PEs of one fabric.
#[derive(Debug)]
pub struct NativeWorkbench {
    algorithms: &'static Algorithms,
    conditions: Conditions,
    /// The best barrier known for a team size.
    barriers: HashMap<u32, Candidate>,
    /// The time of a launch beyond its budget, by the first kind of work and the number of kinds.
    more: HashMap<(Query, usize), Duration>,
    /// How often PEs with a core each lost it.
    switches: Switches,
    /// The query of the longest launch, its number of kinds of work, and its time.
    longest: Option<(Query, usize, Duration)>,
    /// The time at which launches end, whatever they have measured.
    deadline: Option<Instant>,
    /// The medians of each measured barrier, by launch, for each team size.
    barrier_times: HashMap<u32, Vec<(Candidate, Vec<f64>)>>,
}

impl NativeWorkbench {
    /// Creates a workbench with the barriers and the arrival of `wisdom`.
    pub fn new(fabric: Fabric, wisdom: Option<&Wisdom>) -> Self {
        let entries = wisdom.into_iter().flat_map(Wisdom::entries);
        let barriers = entries
            .filter(|entry| entry.query.collective == Collective::Barrier && entry.is_measured())
            .map(|entry| (entry.query.pes, entry.choice.clone()));
        let arrival = wisdom.map_or(Arrival::Together, |wisdom| wisdom.identity().arrival);
        let conditions = Conditions { arrival, ..Conditions::default() };
        Self {
            algorithms: Algorithms::of(fabric),
            conditions,
            barriers: barriers.collect(),
            more: HashMap::new(),
            switches: Switches::default(),
            longest: None,
            deadline: None,
            barrier_times: HashMap::new(),
        }
    }

    /// Returns the algorithms of its PEs.
    pub fn algorithms(&self) -> &'static Algorithms {
        self.algorithms
    }

    /// Returns how often PEs with a core each lost it during measurements.
    pub fn switches(&self) -> &Switches {
        &self.switches
    }

    /// Returns the query of the longest launch so far, its number of kinds of work, and its time.
    /// The budget may be exceeded by one launch.
    pub fn longest_launch(&self) -> Option<(Query, usize, Duration)> {
        self.longest
    }

    /// Times kinds of work in turn, in several launches, within about `budget`. Returns the sample
    /// of each; `None` if the work cannot be done.
    ///
    /// # Errors
    /// If the job cannot be launched or fails.
    pub fn time(
        &mut self,
        pes: u32,
        work: &[Work],
        budget: Duration,
    ) -> Result<Vec<Option<Sample>>, SessionError> {
        let (mut timings, start) = (vec![Timing::default(); work.len()], Instant::now());
        for launch in 0..LAUNCHES {
            let left = budget.saturating_sub(start.elapsed());
            // Blocks during which the machine changed do not count.
            if launch > 0 && left.is_zero() && timings.iter().all(is_measured) {
                break;
            }
            let new = self.time_once(pes, work.to_vec(), left / (LAUNCHES - launch))?;
            for (all, new) in timings.iter_mut().zip(new) {
                all.add(launch as usize, new);
            }
        }
        Ok(samples(&timings))
    }

    /// Times kinds of work in turn, in one launch, within about `budget`.
    fn time_once(
        &mut self,
        pes: u32,
        work: Vec<Work>,
        budget: Duration,
    ) -> Result<Vec<Timing>, SessionError> {
        // A launch takes more time than its blocks: for itself, and to warm up each work.
        let key = work.first().and_then(Work::query).map(|&query| (query, work.len()));
        let more = key.and_then(|key| self.more.get(&key).copied()).unwrap_or_default();
        let budget = budget.saturating_sub(more);
        let (fabric, mode) = (self.algorithms.fabric(), Mode::Throughput);
        let session = Session { fabric, pes, waiting: None, work, mode, budget };
        let choices = AlgorithmChoice::without_wisdom(self.barriers.get(&pes).cloned());
        let start = Instant::now();
        let run = |stop: &AtomicBool| session.run(&choices, &self.conditions, stop);
        let competed = others_run();
        let mut measured = stopped_at(self.deadline, run)?;
        // PEs that share cores always lose them, so competitors are only visible before and after
        // the launch.
        if pes as usize > self.algorithms.cores() && competed && others_run() {
            let blocks = measured.timings.iter_mut().flat_map(|timing| &mut timing.blocks);
            blocks.for_each(|block| block.is_disturbed = true);
        }
        self.switches.add(measured.switches);
        if let Some((query, count)) = key {
            let taken = start.elapsed();
            self.more.insert((query, count), taken.saturating_sub(budget));
            if self.longest.is_none_or(|(.., longest)| longest < taken) {
                self.longest = Some((query, count, taken));
            }
        }
        Ok(measured.timings)
    }
}

/// Calls `run` with a flag that is set at the deadline.
fn stopped_at<T>(deadline: Option<Instant>, run: impl FnOnce(&AtomicBool) -> T) -> T {
    let stop = AtomicBool::new(false);
    let Some(deadline) = deadline else { return run(&stop) };
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let left = deadline.saturating_duration_since(Instant::now());
            if is_done.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                // Relaxed: the flag publishes no other data.
                stop.store(true, Relaxed);
            }
        });
        let result = run(stop);
        drop(done);
        result
    })
}

impl Catalog for NativeWorkbench {
    /// Returns no candidates for calls that cannot be measured: with exit mode None, the data must
    /// be a value or lie in symmetric memory.
    fn candidates(&self, query: &Query) -> Vec<Candidate> {
        let leaves_early = query.sync.exit == SyncMode::None;
        if leaves_early && !query.symmetric && !values::can_ask(query) {
            return Vec::new();
        }
        self.algorithms.candidates(query)
    }

    fn estimate_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        self.algorithms.estimate_ns(query, candidate)
    }

    fn serves(&self, call: &CallSpec, candidate: &Candidate) -> bool {
        self.algorithms.serves(call, candidate)
    }

    fn fingerprint(&self, query: &Query, candidate: &Candidate) -> Option<u64> {
        self.algorithms.fingerprint(query, candidate)
    }

    fn revisions(&self) -> Revisions {
        self.algorithms.revisions()
    }
}

impl Workbench for NativeWorkbench {
    type Error = SessionError;

    fn wait_for_cores(&mut self, most: Duration) -> bool {
        cores_stay_idle(most)
    }

    fn end_within(&mut self, left: Option<Duration>) {
        self.deadline = left.and_then(|left| Instant::now().checked_add(left));
    }

    fn launch(
        &mut self,
        query: &Query,
        candidates: &[Candidate],
        budget: Duration,
    ) -> Result<Vec<Option<Vec<consort_tuner::Block>>>, SessionError> {
        let work = candidates.iter().map(|candidate| Work::of(query, candidate)).collect();
        let blocks = |timing: Timing| {
            let blocks = timing.blocks.iter().map(Block::for_tuner).collect();
            timing.error.is_none().then_some(blocks)
        };
        let all: Vec<Option<Vec<consort_tuner::Block>>> =
            self.time_once(query.pes, work, budget)?.into_iter().map(blocks).collect();
        if query.collective == Collective::Barrier {
            let times = self.barrier_times.entry(query.pes).or_default();
            for (candidate, blocks) in candidates.iter().zip(&all) {
                let mut blocks: Vec<f64> = blocks.iter().flatten().map(|block| block.ns).collect();
                if blocks.is_empty() {
                    continue;
                }
                let launch_ns = median(&mut blocks);
                match times.iter_mut().find(|(known, _)| known == candidate) {
                    Some((_, launches)) => launches.push(launch_ns),
                    None => times.push((candidate.clone(), vec![launch_ns])),
                }
            }
            let typical_ns = |(_, launches): &(Candidate, Vec<f64>)| median(&mut launches.clone());
            let fastest = times.iter().min_by(|a, b| typical_ns(a).total_cmp(&typical_ns(b)));
            if let Some((fastest, _)) = fastest {
                self.barriers.insert(query.pes, fastest.clone());
            }
        }
        Ok(all)
    }
}

/// Returns the entry and exit barrier of a query's calls, by `wisdom` or the model; `None` if they
/// have none.
pub fn entry_and_exit_barrier(
    algorithms: &Algorithms,
    wisdom: Option<&Wisdom>,
    query: &Query,
) -> Option<Candidate> {
    if !CallSpec::from(query).has_barrier() {
        return None;
    }
    let barrier =
        Query { collective: Collective::Barrier, sync: SyncModes::STRICT, bytes: 0, ..*query };
    let measured = Measurements::new(wisdom, algorithms.cores());
    let selected = Selector::new(algorithms, measured).select(&CallSpec::from(&barrier))?;
    Some(selected.candidate.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_fabric::OperatorClass;

    const QUERY: Query = Query {
        collective: Collective::Reduce,
        sync: SyncModes::MINE,
        pes: 2,
        bytes: 64,
        operator: OperatorClass::Commutative,
        symmetric: false,
    };

    #[test]
    fn candidates_are_measured_and_a_barrier_is_kept() {
        let mut bench = NativeWorkbench::new(Fabric::Threads, None);
        let barrier = Query { collective: Collective::Barrier, sync: SyncModes::STRICT, ..QUERY };
        for query in [barrier, QUERY, Query { sync: SyncModes::STRICT, symmetric: true, ..QUERY }] {
            let candidates = bench.candidates(&query);
            let samples = bench.launch(&query, &candidates, Duration::from_millis(20)).unwrap();
            assert_eq!(samples.len(), candidates.len());
            assert!(samples.iter().flatten().count() > 0, "{query:?}");
        }
        assert!(bench.barriers.contains_key(&2));
    }

    #[test]
    fn block_is_disturbed_if_others_take_a_core() {
        let cpus = consort_machine::affinity::allowed().len();
        let stop = AtomicBool::new(false);
        let blocks = thread::scope(|scope| {
            for _ in 0..cpus {
                scope.spawn(|| {
                    while !stop.load(Relaxed) {
                        std::hint::spin_loop()
                    }
                });
            }
            let mut bench = NativeWorkbench::new(Fabric::Threads, None);
            let blocks = bench.launch(&QUERY, &[Candidate::new("flat")], Duration::from_secs(1));
            stop.store(true, Relaxed);
            blocks.unwrap().remove(0).unwrap()
        });
        assert!(cpus < 2 || blocks.iter().any(|block| block.is_disturbed), "{blocks:?}");
    }

    #[test]
    fn a_loose_call_on_private_buffers_takes_a_value() {
        let loose = Query { sync: SyncModes::LOOSE, ..QUERY };
        let mut bench = NativeWorkbench::new(Fabric::Threads, None);
        assert!(bench.candidates(&loose).is_empty(), "no sum of arrays commutes");
        for query in [
            Query { bytes: 8, ..loose },
            Query { operator: OperatorClass::Ordered, ..loose },
            Query { collective: Collective::Broadcast, bytes: 4096, ..loose },
        ] {
            let candidates = bench.candidates(&query);
            let samples = bench.launch(&query, &candidates, Duration::from_millis(10)).unwrap();
            assert!(samples.iter().flatten().count() > 0, "{query:?}");
        }
    }

    #[test]
    fn trees_of_two_pes_are_one_candidate() {
        let bench = NativeWorkbench::new(Fabric::Threads, None);
        let print = |radix, pes| {
            let tree = Candidate::new("knomial").with("radix", radix);
            bench.fingerprint(&Query { pes, ..QUERY }, &tree)
        };
        assert!(print(2, 2).is_some() && print(2, 2) == print(4, 2) && print(2, 8) != print(4, 8));
    }

    #[test]
    fn candidate_that_cannot_serve_gets_no_sample() {
        let mut bench = NativeWorkbench::new(Fabric::Threads, None);
        let candidates = [Candidate::new("flat"), Candidate::new("none")];
        let samples = bench.launch(&QUERY, &candidates, Duration::from_millis(5)).unwrap();
        assert!(samples[0].is_some() && samples[1].is_none());
    }

    #[test]
    fn strict_calls_have_entry_and_exit_barriers() {
        assert_eq!(entry_and_exit_barrier(Algorithms::here(), None, &QUERY), None);
        assert!(
            entry_and_exit_barrier(
                Algorithms::here(),
                None,
                &Query { sync: SyncModes::STRICT, ..QUERY }
            )
            .is_some()
        );
    }
}
