//! The results of a simulation: the time of a call, the data that it moved, and the causes of its
//! time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Result;
use consort::Rank;
use consort_fabric::statistics::Summary;
use consort_sim::{
    Cause, Effects, Simulation, Total, Trace,
    machines::{Kind, Machine},
};
use serde::Serialize;

use super::program::Program;
use consort_bench::{
    harness::{Figure, Mode, hundredths},
    units,
};

/// The settings that all simulations of a run have in common.
#[derive(Debug)]
pub struct Conditions {
    /// The machine.
    pub machine: Machine,
    /// Bytes in its lines.
    pub line_bytes: usize,
    /// The seed of random delays.
    pub seed: u64,
    /// The simulated effects.
    pub effects: Effects,
}

impl Conditions {
    /// Returns a size as text: in lines, if it is a multiple of a line, and in bytes.
    pub fn size(&self, bytes: u64) -> String {
        let (shown, line_bytes) = (units::size(bytes), self.line_bytes as u64);
        if !bytes.is_multiple_of(line_bytes) {
            return shown;
        }
        format!("{}, {shown}", units::counted(bytes / line_bytes, "line"))
    }

    /// Returns whether lines are transferred between coherent caches.
    pub fn is_coherent(&self) -> bool {
        matches!(self.machine.kind, Kind::Coherent(_))
    }

    /// Returns the simulated effects as text.
    pub fn how(&self) -> String {
        let Effects { contention, distances, fitted, .. } = self.effects;
        let distances = if distances { "its distances" } else { "all distances the shortest" };
        let queues = if contention { "contention" } else { "no contention" };
        let fitted = if fitted { "with parameters fitted" } else { "nothing fitted" };
        format!("{distances}, {queues}, {fitted} to results")
    }
}

/// The results of one simulation, for one call.
#[derive(Debug)]
pub struct Simulated {
    /// The simulated program.
    pub program: Program,
    /// The time from the first entry to the last exit or, in a row, from exit to exit.
    pub call_ns: f64,
    /// The times of all calls.
    calls_ns: Vec<f64>,
    /// The messages, signals, puts and gets of all PEs.
    pub messages: f64,
    /// The number of bytes in them.
    pub message_bytes: f64,
    /// The transfers of cache lines, on coherent machines.
    pub transfers: f64,
    /// The mean time of all PEs.
    pub mean: Spent,
    /// The time of the PE that left the last call last.
    pub last: Spent,
    /// The rank of that PE.
    pub last_pe: Rank,
    /// The number of events of the simulation.
    pub events: u64,
    /// The real time of the simulation.
    pub took: Duration,
    /// The trace, if it was enabled.
    pub trace: Trace,
}

/// The causes of a PE's time, in nanoseconds per call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// The time for each cause that the simulator knows.
    pub by_cause_ns: [f64; Cause::EVERY.len()],
    /// The rest of the time, in which the PE waits.
    pub waiting_ns: f64,
}

impl Spent {
    /// Returns the time that `pes` PEs spent in this many calls each.
    fn of(total: &Total, within_ns: f64, pes: u32, calls: u64) -> Self {
        let whole = f64::from(pes) * calls as f64;
        let by_cause_ns = Cause::EVERY.map(|cause| total.spent_ns(cause) / whole);
        // A random delay may make an operation shorter than the time that its account has for it.
        let waiting_ns = (within_ns / whole - by_cause_ns.iter().sum::<f64>()).max(0.0);
        Self { by_cause_ns, waiting_ns }
    }

    /// Returns the times by name, in hundredths of a nanosecond, for programs.
    fn record(&self) -> BTreeMap<String, f64> {
        let cause = |(cause, ns): (Cause, f64)| {
            (format!("{}_ns", cause.name().replace('-', "_")), hundredths(ns))
        };
        let causes = Cause::EVERY.into_iter().zip(self.by_cause_ns).map(cause);
        causes.chain([("waiting_ns".to_owned(), hundredths(self.waiting_ns))]).collect()
    }
}

/// One line of JSON: a figure as in `consort bench`, and the details of the simulation.
#[derive(Debug, Serialize)]
pub struct Record {
    #[serde(flatten)]
    figure: Figure,
    sim: Details,
}

#[derive(Debug, Serialize)]
struct Details {
    root: u32,
    seed: u64,
    near: bool,
    contention: bool,
    fitted: bool,
    /// The counts of all PEs, per call.
    messages: f64,
    message_bytes: f64,
    /// Transfers of cache lines; null on machines without coherent caches.
    line_transfers: Option<f64>,
    /// The causes of the time of a PE, per call.
    mean: BTreeMap<String, f64>,
    last: BTreeMap<String, f64>,
    last_pe: u32,
    events: u64,
}

impl Simulated {
    /// Runs a simulation, and passes the completed share to `show`.
    ///
    /// # Errors
    /// As [`Program::simulate_on`].
    pub fn of(program: Program, simulation: &Simulation, show: &dyn Fn(f64)) -> Result<Self> {
        let began = Instant::now();
        let simulated = program.simulate_with_progress(simulation, show)?;
        let took = began.elapsed();
        let totals = &simulated.outcome.totals;
        let all = totals.iter().fold(Total::default(), |all, one| all.and(one));
        let last = simulated.last.index();
        let (calls, last_ns) = (program.calls, simulated.within_ns[last]);
        Ok(Self {
            call_ns: simulated.call_ns(program.mode)?,
            messages: all.messages as f64 / calls as f64,
            message_bytes: all.bytes as f64 / calls as f64,
            transfers: all.transfers as f64 / calls as f64,
            mean: Spent::of(&all, simulated.within_ns.iter().sum(), program.query.pes, calls),
            last: Spent::of(&totals[last], last_ns, 1, calls),
            last_pe: simulated.last,
            calls_ns: simulated.calls_ns,
            events: simulated.outcome.events,
            took,
            trace: simulated.outcome.trace,
            program,
        })
    }

    /// Returns the bytes of a call divided by its time, in 10^6 B/s, or `None` for a barrier.
    pub fn mbps(&self) -> Option<f64> {
        let bytes = self.program.query.bytes;
        (bytes > 0).then(|| bytes as f64 / self.call_ns * 1e3)
    }

    /// Returns the results as JSON.
    pub fn record(&self, conditions: &Conditions) -> Record {
        let Program { query, candidate, root, mode, .. } = &self.program;
        let figure = Figure {
            fabric: format!("sim:{}", conditions.machine.name).into(),
            algorithm: Some(candidate.named()),
            params: Some(candidate.parameters().iter().cloned().collect()),
            sync: Some(query.sync.to_string()),
            bytes: Some(self.program.bytes()).filter(|&bytes| bytes > 0),
            placement: format!("pinned:0-{}", query.pes - 1),
            ..Figure::of(query.collective.name(), query.pes, *mode)
        };
        let figure = match mode {
            Mode::Latency => figure.with(&Summary::of(&self.calls_ns)),
            Mode::Throughput => figure,
        };
        let (median_ns, reps) = (Some(hundredths(self.call_ns)), self.calls_ns.len());
        Record {
            figure: Figure { median_ns, reps, ..figure },
            sim: Details {
                root: root.0,
                seed: conditions.seed,
                near: !conditions.effects.distances,
                contention: conditions.effects.contention,
                fitted: conditions.effects.fitted,
                messages: self.messages,
                message_bytes: self.message_bytes,
                line_transfers: conditions.is_coherent().then_some(self.transfers),
                mean: self.mean.record(),
                last: self.last.record(),
                last_pe: self.last_pe.0,
                events: self.events,
            },
        }
    }
}
