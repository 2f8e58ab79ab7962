//! Compares predictions by the description of this machine with measurements.
//!
//! Each call is simulated on the described machine, then measured here, with the same algorithm, as
//! calls in a row. Only blocks of one class count: the cores must be as far apart, near or far, as
//! when the machine was described.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use consort::{Algorithms, Arrival, Candidate, Collective, Fabric, Query, SyncModes};
use consort_fabric::CallSpec;
use consort_fabric::statistics::median;
use consort_sim::{
    Simulation,
    machines::{Kind, Machine, State},
};
use consort_tuner::{Measured, Selector, TransferClass, default_path};
use serde::Serialize;

use crate::{
    asked::{self, sums},
    harness::{Choices, Conditions, Mode, Session, Timing, Work, of_class},
    simulation::{Program, program},
    wisdom::usable,
};

/// The number of launches over which a measurement is spread.
const LAUNCHES: u32 = 3;
/// The additional launches if the cores are in the other class all the time.
const MORE_LAUNCHES: u32 = 6;
/// The calls of a simulation; the first is not counted.
const CALLS: u64 = 33;

/// The calls to predict: a barrier, broadcasts and reductions.
#[derive(Debug)]
pub struct Prediction<'p> {
    /// The number of PEs.
    pub pes: u32,
    /// Sizes of a block.
    pub sizes_bytes: &'p [usize],
    /// The modes of calls.
    pub syncs: &'p [SyncModes],
    /// The time for all of it.
    pub budget: Duration,
    /// Ends measuring with the present block once it is set.
    pub stop: &'p AtomicBool,
}

/// The predictions and the measurements.
#[derive(Debug, Serialize)]
pub struct Predicted {
    /// The described machine.
    pub machine: String,
    /// The number of PEs.
    pub pes: u32,
    /// The one-way transfer of the description, in nanoseconds.
    pub transfer_ns: f64,
    /// Its class.
    pub class: String,
    /// The median of the absolute errors, as a share.
    pub median_error: f64,
    /// The number of calls without a block of the class.
    #[serde(skip)]
    pub missing: usize,
    /// The time that simulating took.
    #[serde(skip)]
    pub simulating: Duration,
    /// The time of the longest launch, in which each call is measured once at least.
    #[serde(skip)]
    pub longest_launch: Duration,
    /// The calls that were measured.
    pub calls: Vec<Call>,
}

/// One kind of call.
#[derive(Debug, Serialize)]
pub struct Call {
    /// The query.
    #[serde(flatten, with = "asked::Asked")]
    pub query: Query,
    /// The candidate that served.
    #[serde(serialize_with = "asked::shown")]
    pub candidate: Candidate,
    /// The simulated time.
    pub predicted_ns: f64,
    /// The median of the blocks.
    pub measured_ns: f64,
    /// The number of blocks.
    pub blocks: usize,
    /// The prediction's excess over the measurement, as a share of the measurement.
    pub error: f64,
}

impl Prediction<'_> {
    /// Measures, and simulates on `machine`. Passes the present step and the share that is complete
    /// to `show`.
    ///
    /// # Errors
    /// When the machine cannot be this one, has too few PEs, or measuring fails.
    pub fn run(&self, machine: &Machine, show: &dyn Fn(&str, f64)) -> Result<Predicted> {
        let Kind::Coherent(cores) = &machine.kind else {
            bail!("{}: only machines of coherent caches can be this one", machine.name)
        };
        let usable = Algorithms::here().cores();
        ensure!(
            self.pes <= machine.pes().min(usable),
            "--pes {}: {} has {} PEs, and {usable} cores are usable here",
            self.pes,
            machine.name,
            machine.pes(),
        );
        let distance = cores.distance(0, 1);
        let transfer_ns =
            cores.store_ns(State::Shared, distance) + cores.load_ns(State::Modified, distance);
        let class = TransferClass::of(transfer_ns);
        let (asked, begun) = (self.asked()?, Instant::now());
        let simulation = Simulation::on(machine.clone(), self.pes);
        let mut predicted = Vec::new();
        for (index, (query, candidate)) in asked.iter().enumerate() {
            show("simulating", index as f64 / asked.len() as f64);
            predicted.push(self.simulate(&simulation, query, candidate)?);
        }
        let simulating = begun.elapsed();
        let budget = self.budget.saturating_sub(simulating);
        let (timings, longest_launch) =
            self.measure(&asked, class, budget, &|share| show("measuring", share))?;
        let (asked_count, mut calls) = (asked.len(), Vec::new());
        for (((query, candidate), timing), predicted_ns) in
            asked.into_iter().zip(&timings).zip(predicted)
        {
            let blocks = of_class(timing, Some(class));
            if blocks.is_empty() {
                continue;
            }
            let mut times: Vec<f64> = blocks.iter().map(|block| block.ns).collect();
            let (blocks, measured_ns) = (times.len(), median(&mut times));
            calls.push(Call {
                query,
                candidate,
                predicted_ns,
                measured_ns,
                blocks,
                error: predicted_ns / measured_ns - 1.0,
            });
        }
        ensure!(
            // Relaxed: the flag publishes no other data.
            !calls.is_empty() || !self.stop.load(Relaxed),
            "interrupted before anything was measured"
        );
        ensure!(
            !calls.is_empty(),
            "the cores are not {class} now, as they were when {} was described: describe the \
             machine anew with `consort calibrate`, or try again",
            machine.name,
        );
        let mut errors: Vec<f64> = calls.iter().map(|call| call.error.abs()).collect();
        Ok(Predicted {
            machine: machine.name.clone(),
            pes: self.pes,
            transfer_ns,
            class: class.to_string(),
            median_error: median(&mut errors),
            missing: asked_count - calls.len(),
            simulating,
            longest_launch,
            calls,
        })
    }

    /// The calls, each with the algorithm that serves it on this machine.
    fn asked(&self) -> Result<Vec<(Query, Candidate)>> {
        let algorithms = Algorithms::here();
        let wisdom = usable(&default_path(Arrival::Together)?, algorithms.identity());
        let call = |collective, sync, bytes| sums(collective, sync, self.pes, bytes, false);
        let mut queries = vec![call(Collective::Barrier, SyncModes::STRICT, 0)];
        for &sync in self.syncs {
            for collective in [Collective::Broadcast, Collective::Reduce, Collective::AllReduce] {
                queries.extend(self.sizes_bytes.iter().map(|&bytes| call(collective, sync, bytes)));
            }
        }
        let measured = Measured::new(wisdom.as_ref(), algorithms.cores());
        let selector = Selector::new(algorithms, measured);
        let serving = |query: Query| {
            let selected = selector.select(&CallSpec::from(&query));
            let selected = selected.with_context(|| format!("no algorithm serves {query:?}"))?;
            Ok((query, selected.candidate.into_owned()))
        };
        queries.into_iter().map(serving).collect()
    }

    /// Measures all calls in turn, in several launches, until each has blocks of the class or the
    /// budget is spent. Returns the time of the longest launch too.
    fn measure(
        &self,
        asked: &[(Query, Candidate)],
        class: TransferClass,
        budget: Duration,
        show: &dyn Fn(f64),
    ) -> Result<(Vec<Timing>, Duration)> {
        let work: Vec<Work> =
            asked.iter().map(|(query, candidate)| Work::of(query, candidate)).collect();
        let (mode, waiting, begun) = (Mode::Throughput, None, Instant::now());
        let mut timings = vec![Timing::default(); asked.len()];
        let (mut longest, mut besides) = (Duration::ZERO, Duration::ZERO);
        for launch in 0..LAUNCHES + MORE_LAUNCHES {
            let lacking =
                timings.iter().any(|timing: &Timing| of_class(timing, Some(class)).is_empty());
            let left = budget.saturating_sub(begun.elapsed());
            // A launch that would end much later than the budget is not begun.
            let is_over = left < besides || launch >= LAUNCHES && !lacking;
            if launch > 0 && (is_over || self.stop.load(Relaxed)) {
                break;
            }
            // Besides its blocks a launch takes time for itself, and to warm up each call.
            let share = left / LAUNCHES.saturating_sub(launch).max(1);
            let budget = share.saturating_sub(besides);
            let (fabric, pes, work) = (Fabric::Threads, self.pes, work.clone());
            let session = Session { fabric, pes, waiting, work, mode, budget };
            let choices = Choices::without_wisdom(Some(program::barrier()));
            let launched = Instant::now();
            let measured = session.run(&choices, &Conditions::default(), self.stop)?;
            let taken = launched.elapsed();
            besides = taken.saturating_sub(budget);
            longest = longest.max(taken);
            for (all, new) in timings.iter_mut().zip(measured.timings) {
                all.blocks.extend(new.blocks);
            }
            show(f64::from(launch + 1) / f64::from(LAUNCHES));
        }
        Ok((timings, longest))
    }

    fn simulate(
        &self,
        simulation: &Simulation,
        query: &Query,
        candidate: &Candidate,
    ) -> Result<f64> {
        let (mode, calls) = (Mode::Throughput, CALLS);
        let program = Program { mode, calls, ..Program::once(*query, candidate) };
        let played = program.play(simulation);
        let called = || format!("{} by {candidate}", asked::describe(query));
        played.with_context(called)?.call_ns(mode)
    }
}
