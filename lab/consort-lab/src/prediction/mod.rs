//! Compares predictions with measurements of calls in a row, both with the same algorithm.
//!
//! 1. `cores`: threads, simulated on the description of this machine;
//! 2. `network`: processes of an MPI, in the LogGP model and simulated on a cluster. Both use the
//!    times of messages between two of the processes.

mod cores;
mod network;

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use consort::{
    launch::Fabric,
    sync_modes::SyncModes,
    tune::{Candidate, Query},
};
use consort_fabric::statistics::median;
use consort_sim::Simulation;
use consort_tuner::TransferClass;
use serde::Serialize;

use crate::simulation::{Program, program};
use consort_bench::{
    harness::{AlgorithmChoice, Conditions, Mode, Session, Timing, Work, of_class},
    query_json,
};

pub use network::Parameters;

/// The number of launches over which a measurement is spread.
const LAUNCHES: u32 = 3;
/// The additional launches if some work lacks blocks that count.
const MORE_LAUNCHES: u32 = 6;
/// The number of calls in a simulation. The first is not counted.
const CALLS: u64 = 33;

/// The calls to predict.
#[derive(Debug)]
pub struct Prediction<'p> {
    /// The number of PEs.
    pub pes: u32,
    /// The sizes of a block.
    pub sizes_bytes: &'p [usize],
    /// The synchronization modes of calls.
    pub syncs: &'p [SyncModes],
    /// The time for everything.
    pub budget: Duration,
    /// Ends measuring after the present block once it is set.
    pub stop: &'p AtomicBool,
}

/// The predictions and the measurements.
#[derive(Debug, Serialize)]
pub struct Predicted {
    /// The described machine.
    pub machine: String,
    /// The number of PEs.
    pub pes: u32,
    /// The basis of the predictions.
    #[serde(flatten)]
    pub basis: Basis,
    /// The median of the absolute errors of simulations, as a share.
    pub median_error: f64,
    /// The largest absolute error of simulations.
    pub worst_error: f64,
    /// The median of the absolute errors of the model, if there is one.
    pub model_median_error: Option<f64>,
    /// The largest absolute error of the model.
    pub model_worst_error: Option<f64>,
    /// The number of calls without a block that counts.
    #[serde(skip)]
    pub missing: usize,
    /// The time that simulating took.
    #[serde(skip)]
    pub simulating: Duration,
    /// The time of the longest launch, in which each call is measured at least once.
    #[serde(skip)]
    pub longest_launch: Duration,
    /// The measured calls.
    pub calls: Vec<Call>,
}

/// The basis of predictions.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Basis {
    /// The description of this machine.
    Cores {
        /// Its one-way transfer, in nanoseconds.
        transfer_ns: f64,
        /// The class of this transfer.
        #[serde(serialize_with = "query_json::shown")]
        class: TransferClass,
    },
    /// Messages between two processes.
    Network(Parameters),
}

/// One kind of call.
#[derive(Debug, Serialize)]
pub struct Call {
    /// The query.
    #[serde(flatten, with = "query_json::QueryJson")]
    pub query: Query,
    /// The candidate that served.
    #[serde(serialize_with = "query_json::shown")]
    pub candidate: Candidate,
    /// The simulated time.
    pub predicted_ns: f64,
    /// The time in the model, if there is one.
    pub model_ns: Option<f64>,
    /// The median of the blocks.
    pub measured_ns: f64,
    /// The number of blocks.
    pub blocks: usize,
    /// The excess of the prediction over the measurement, as a share of the measurement.
    pub error: f64,
    /// The same for the model.
    pub model_error: Option<f64>,
}

/// The times of work.
struct Taken {
    timings: Vec<Timing>,
    longest_launch: Duration,
}

impl Call {
    /// Returns the prediction of a call with the times of its blocks, or `None` without blocks.
    fn new(
        (query, candidate): (Query, Candidate),
        (predicted_ns, model_ns): (f64, Option<f64>),
        times: &mut [f64],
    ) -> Option<Self> {
        let (blocks, measured_ns) = (times.len(), (!times.is_empty()).then(|| median(times))?);
        let error = |ns: f64| ns / measured_ns - 1.0;
        Some(Self {
            query,
            candidate,
            predicted_ns,
            model_ns,
            measured_ns,
            blocks,
            error: error(predicted_ns),
            model_error: model_ns.map(error),
        })
    }
}

impl Predicted {
    /// Returns the median and the largest of some absolute errors.
    fn errors(errors: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
        let mut errors: Vec<f64> = errors.map(f64::abs).collect();
        let worst = errors.iter().copied().reduce(f64::max)?;
        Some((median(&mut errors), worst))
    }

    /// Returns the errors of these calls. There must be at least one call.
    fn new((machine, pes): (String, u32), basis: Basis, calls: Vec<Call>) -> Self {
        let of_model = Self::errors(calls.iter().filter_map(|call| call.model_error));
        let (median_error, worst_error) =
            Self::errors(calls.iter().map(|call| call.error)).unwrap_or_default();
        Self {
            machine,
            pes,
            basis,
            median_error,
            worst_error,
            model_median_error: of_model.map(|(median, _)| median),
            model_worst_error: of_model.map(|(_, worst)| worst),
            missing: 0,
            simulating: Duration::ZERO,
            longest_launch: Duration::ZERO,
            calls,
        }
    }
}

impl Prediction<'_> {
    /// Fails if nothing was measured because of an interrupt.
    fn ensure_measured(&self, calls: &[Call]) -> Result<()> {
        // Relaxed: the flag publishes no other data.
        let is_stopped = self.stop.load(Relaxed);
        ensure!(!calls.is_empty() || !is_stopped, "interrupted before anything was measured");
        Ok(())
    }

    /// Measures all work in turn, in several launches, until all work has blocks of the class or
    /// the budget is spent.
    fn measure(
        &self,
        fabric: Fabric,
        work: &[Work],
        class: Option<TransferClass>,
        budget: Duration,
        show: &dyn Fn(f64),
    ) -> Result<Taken> {
        let (mode, waiting, begun) = (Mode::Throughput, None, Instant::now());
        let mut timings = vec![Timing::default(); work.len()];
        let (mut longest, mut overhead) = (Duration::ZERO, Duration::ZERO);
        for launch in 0..LAUNCHES + MORE_LAUNCHES {
            let lacking = timings.iter().any(|timing: &Timing| of_class(timing, class).is_empty());
            let left = budget.saturating_sub(begun.elapsed());
            // Do not start a launch that would end much later than the budget.
            let is_over = left < overhead || launch >= LAUNCHES && !lacking;
            if launch > 0 && (is_over || self.stop.load(Relaxed)) {
                break;
            }
            // In addition to its blocks, a launch needs time to start, and to warm up each call.
            let share = left / LAUNCHES.saturating_sub(launch).max(1);
            let budget = share.saturating_sub(overhead);
            let (pes, work) = (self.pes, work.to_vec());
            let session = Session { fabric, pes, waiting, work, mode, budget };
            let choices = AlgorithmChoice::without_wisdom(Some(program::barrier()));
            let launched = Instant::now();
            let measured = session.run(&choices, &Conditions::default(), self.stop)?;
            let taken = launched.elapsed();
            overhead = taken.saturating_sub(budget);
            longest = longest.max(taken);
            for (all, new) in timings.iter_mut().zip(measured.timings) {
                all.add(launch as usize, new);
            }
            show(f64::from(launch + 1) / f64::from(LAUNCHES));
        }
        Ok(Taken { timings, longest_launch: longest })
    }
}

/// Returns the simulated time of a call.
fn simulate(simulation: &Simulation, query: &Query, candidate: &Candidate) -> Result<f64> {
    let (mode, calls) = (Mode::Throughput, CALLS);
    let program = Program { mode, calls, ..Program::once(*query, candidate) };
    let simulated = program.simulate_on(simulation);
    let called = || format!("{query} by {candidate}");
    simulated.with_context(called)?.call_ns(mode)
}

/// Returns the times of the blocks that count.
fn times(timing: &Timing, class: Option<TransferClass>) -> Vec<f64> {
    of_class(timing, class).iter().map(|block| block.ns).collect()
}

#[cfg(test)]
mod tests {
    use consort::tune::Collective;

    use super::*;

    #[test]
    fn errors_cover_simulation_and_model() {
        let query = query_json::sums(Collective::Reduce, SyncModes::MINE, 2, 8, false);
        let call = |predicted_ns, model_ns, times: &mut [f64]| {
            Call::new((query, Candidate::new("flat")), (predicted_ns, model_ns), times)
        };
        assert!(call(1.0, None, &mut []).is_none());
        let calls = [
            call(50.0, Some(90.0), &mut [90.0, 100.0, 400.0]),
            call(120.0, Some(300.0), &mut [100.0]),
            call(110.0, None, &mut [100.0]),
        ];
        let calls: Vec<Call> = calls.into_iter().flatten().collect();
        let errors: Vec<_> = calls.iter().map(|one| (one.error, one.model_error)).collect();
        assert_eq!(errors[0].0, -0.5);
        assert_eq!((calls[0].blocks, errors[1].1, errors[2].1), (3, Some(2.0), None));
        let basis = Basis::Cores { transfer_ns: 1.0, class: TransferClass::Near };
        let all = Predicted::new((String::new(), 2), basis, calls);
        let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(near(all.median_error, 0.2) && near(all.worst_error, 0.5), "{all:?}");
        assert!(near(all.model_worst_error.unwrap(), 2.0), "{all:?}");
        assert!(near(all.model_median_error.unwrap(), f64::midpoint(0.1, 2.0)), "{all:?}");
    }
}
