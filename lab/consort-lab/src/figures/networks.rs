//! The machines of Nishtala, Zheng, Hargrove and Yelick (2011, table 1), simulated: the first PEs
//! of networks of nodes with 4, 4 and 16 cores.

use anyhow::Result;
use consort::tune::{Candidate, Query};
use consort_collectives::serves;
use consort_fabric::window;
use consort_sim::{Simulation, machines};

use crate::simulation::{Described, Program};
use consort_bench::harness::Mode;

/// A Cray XT4: a torus.
pub const CRAY: &str = "cray-xt4";
/// An IBM BlueGene/P: a torus of more nodes, which are slower.
pub const BLUE_GENE: &str = "bluegene-p";
/// A Sun Constellation: a fat tree.
pub const RANGER: &str = "ranger";

/// The number of calls in a row.
const CALLS: u64 = 4;

/// The first PEs of a simulated machine.
pub(super) struct Machine {
    machine: machines::Machine,
    pub(super) pes: u32,
    calls: u64,
}

impl Machine {
    pub(super) fn new(name: &str, pes: u32) -> Result<Self> {
        Ok(Self::of(machines::Machine::find(name)?, pes))
    }

    pub(super) fn of(machine: machines::Machine, pes: u32) -> Self {
        Self { machine, pes, calls: CALLS }
    }

    /// Returns the same machine with rows of more calls: one that finds the pipeline empty, and a
    /// quarter of the team's window, for which credits are given.
    pub(super) fn with_credits(self) -> Self {
        let quarter = window(self.pes as usize) / 4;
        Self { calls: 1 + quarter as u64, ..self }
    }

    /// Returns the algorithms that it can run, and the model's estimates for them.
    pub(super) fn described(&self) -> Result<Described> {
        Described::of(self.machine.clone(), self.pes)
    }

    /// Returns whether it can run a call with a candidate.
    pub(super) fn serves(&self, query: &Query, candidate: &Candidate) -> Result<bool> {
        let setting = Program::once(*query, candidate)
            .setting(Simulation::on(self.machine.clone(), self.pes).capabilities()?);
        Ok(serves(&setting, candidate))
    }

    /// Returns the fastest candidate for calls in a row, and the time of a call in nanoseconds,
    /// which is infinite if there is no candidate.
    pub(super) fn best(
        &self,
        query: &Query,
        candidates: impl IntoIterator<Item = Candidate>,
    ) -> Result<(Option<Candidate>, f64)> {
        let mut best = (None, f64::INFINITY);
        for candidate in candidates {
            let once = Program::once(*query, &candidate);
            let program = Program { mode: Mode::Throughput, calls: self.calls, ..once };
            let simulation = Simulation::on(self.machine.clone(), self.pes);
            let simulation = simulation.heap_bytes(program.heap_bytes());
            let ns = program.simulate_on(&simulation)?.call_ns(program.mode)?;
            if ns < best.1 {
                best = (Some(candidate), ns);
            }
        }
        Ok(best)
    }
}
