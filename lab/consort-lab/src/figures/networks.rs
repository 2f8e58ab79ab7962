//! The machines of Nishtala, Zheng, Hargrove and Yelick (2011, table 1), simulated: the first PEs
//! of networks of nodes with 4, 4 and 16 cores.

use std::cell::OnceCell;

use anyhow::Result;
use consort::tune::{Candidate, Query};
use consort_collectives::serves;
use consort_fabric::{CallSpec, window};
use consort_sim::{Simulation, machines};

use super::measure::{self, Way, radices};
use crate::simulation::{Described, Program, program};
use consort_bench::harness::Mode;

/// A Cray XT4: a torus.
pub const CRAY: &str = "cray-xt4";
/// An IBM BlueGene/P: a torus of more nodes, which are slower.
pub const BLUE_GENE: &str = "bluegene-p";
/// A Sun Constellation: a fat tree.
pub const RANGER: &str = "ranger";

/// The number of calls in a row.
const CALLS: u64 = 4;
/// The radices of barriers by dissemination.
const DISSEMINATIONS: [u64; 3] = [2, 4, 8];

/// The first PEs of a simulated machine.
pub(super) struct Machine {
    machine: machines::Machine,
    pub(super) pes: u32,
    calls: u64,
    /// The fastest barrier, once a call needs one.
    barrier: OnceCell<Candidate>,
}

impl Machine {
    pub(super) fn new(name: &str, pes: u32) -> Result<Self> {
        Ok(Self::of(machines::Machine::find(name)?, pes))
    }

    pub(super) fn of(machine: machines::Machine, pes: u32) -> Self {
        Self { machine, pes, calls: CALLS, barrier: OnceCell::new() }
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

    /// Returns the barrier of Strict calls: the fastest tree or dissemination. A tree whose radix is
    /// the number of PEs of a node has a representative of each node, as in section 3.1.
    fn barrier(&self) -> Result<Candidate> {
        if let Some(barrier) = self.barrier.get() {
            return Ok(barrier.clone());
        }
        let disseminations =
            DISSEMINATIONS.map(|radix| Candidate::new("dissemination").with("radix", radix));
        let trees = radices(self.pes).map(|radix| Way::Sent.tree(radix)).chain([measure::flat()]);
        let candidates = trees.chain(disseminations);
        let (fastest, _) = self.best(&measure::barrier(self.pes), candidates)?;
        let fastest = fastest.unwrap_or_else(program::barrier);
        Ok(self.barrier.get_or_init(|| fastest).clone())
    }

    /// Returns the fastest candidate for calls in a row, and the time of a call in nanoseconds,
    /// which is infinite if there is no candidate.
    pub(super) fn best(
        &self,
        query: &Query,
        candidates: impl IntoIterator<Item = Candidate>,
    ) -> Result<(Option<Candidate>, f64)> {
        let has_barrier = CallSpec::from(query).has_barrier();
        let mut best = (None, f64::INFINITY);
        for candidate in candidates {
            let mut once = Program::once(*query, &candidate);
            if has_barrier {
                once.barrier = self.barrier()?;
            }
            let row = Program { mode: Mode::Throughput, calls: self.calls, ..once };
            let simulation = Simulation::on(self.machine.clone(), self.pes);
            let simulation = simulation.heap_bytes(row.heap_bytes());
            let ns = row.simulate_on(&simulation)?.call_ns(row.mode)?;
            if ns < best.1 {
                best = (Some(candidate), ns);
            }
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 3.1: one PE of each node communicates with the other nodes.
    #[test]
    fn barrier_has_a_representative_of_each_node() {
        let machine = Machine::new(RANGER, 32).unwrap();
        let barrier = machine.barrier().unwrap();
        assert_eq!((&*barrier.algorithm, barrier.parameter("radix")), ("knomial", Some(16)));
        let query = measure::barrier(32);
        let ns = |candidate| machine.best(&query, [candidate]).unwrap().1;
        let [tuned, untuned] = [barrier.clone(), program::barrier()].map(ns);
        assert!(2.0 * tuned < untuned, "{tuned} and {untuned} ns");
        // The barriers of Strict calls are the same.
        assert_eq!(machine.barrier.get(), Some(&barrier));
    }
}
