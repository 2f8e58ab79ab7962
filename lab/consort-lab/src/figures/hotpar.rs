//! The machines of Nishtala and Yelick (HotPar 2009), simulated with all their threads.

use std::cell::OnceCell;

use anyhow::Result;
use consort::{
    sync_modes::SyncModes,
    tune::{Candidate, Query},
};
use consort_fabric::{CallSpec, window};
use consort_sim::{Simulation, machines};

use super::measure::{self, Best, Way, radices};
use crate::simulation::Program;
use consort_bench::harness::{Mode, Work};

/// The paper's machines, with the threads and sockets of its table 1. This one has 256 threads.
pub const NIAGARA2: &str = "niagara2-x4";
/// 32 threads.
pub const BARCELONA: &str = "barcelona-x8";
/// 8 threads.
pub const CLOVERTOWN: &str = "clovertown-x2";

/// The numbers of calls in a row: those before the timed ones, the timed ones, and those after
/// them. All PEs are busy during the timed ones.
const CALLS: (usize, usize, usize) = (8, 8, 32);
/// The same for calls that each start after all PEs have left the previous one.
const STRICT_CALLS: (usize, usize, usize) = (2, 2, 0);
/// A window of more calls than any row has, so that no PE ever waits for credits.
const ENDLESS: u64 = 1024;
/// A tree this many times slower than the best at one size is not tried at larger ones.
const TOO_SLOW: f64 = 1.5;

/// The mechanism that keeps the PEs of calls in a row from running ahead of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowControl {
    /// The credits of a team, as on this machine.
    Credits,
    /// Nothing, as if each call had its own memory.
    None,
}

impl FlowControl {
    /// Returns the suffix of the names of figures.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Credits => "",
            Self::None => ", no flow control",
        }
    }
}

/// A simulated machine of the paper.
pub(super) struct Machine {
    machine: machines::Machine,
    pub(super) pes: u32,
    flow: FlowControl,
    /// The fastest barrier, once a call needs one.
    barrier: OnceCell<Candidate>,
}

impl Machine {
    pub(super) fn new(name: &str) -> Result<Self> {
        Ok(Self::of(machines::Machine::find(name)?))
    }

    pub(super) fn of(machine: machines::Machine) -> Self {
        let flow = FlowControl::Credits;
        Self { pes: machine.pes(), machine, flow, barrier: OnceCell::new() }
    }

    /// Returns the same machine with this flow control.
    pub(super) fn with(self, flow: FlowControl) -> Self {
        Self { flow, ..self }
    }

    /// Returns the calls of a row of Loose calls. The timed ones are whole quarters of the window.
    /// Each quarter starts with credits.
    fn loose_calls(&self) -> (usize, usize, usize) {
        let (before, timed, after) = CALLS;
        match self.flow {
            FlowControl::None => CALLS,
            FlowControl::Credits => {
                let quarter = window(self.pes as usize) / 4;
                (before.max(quarter), timed.max(quarter), after)
            }
        }
    }

    /// Returns the barrier between Strict calls: the "tuned barrier" of section 3, which is the
    /// fastest flat one or tree of figure 2.
    fn barrier(&self) -> Result<Candidate> {
        if let Some(barrier) = self.barrier.get() {
            return Ok(barrier.clone());
        }
        let mut fastest = (f64::INFINITY, measure::flat());
        for tree in Way::Sent.trees(self.pes).into_iter().chain([measure::flat()]) {
            let ns = self.timed(measure::barrier(self.pes), &tree)?.ns;
            if ns < fastest.0 {
                fastest = (ns, tree);
            }
        }
        Ok(self.barrier.get_or_init(|| fastest.1).clone())
    }

    /// Returns the time of a call in a row of them.
    pub(super) fn timed(&self, query: Query, candidate: &Candidate) -> Result<Best> {
        let is_strict = query.sync != SyncModes::LOOSE;
        let (before, timed, after) = if is_strict { STRICT_CALLS } else { self.loose_calls() };
        let (mode, calls) = (Mode::Throughput, (before + timed + after) as u64);
        let mut program = Program { mode, calls, ..Program::once(query, candidate) };
        if CallSpec::from(&query).has_barrier() {
            program.barrier = self.barrier()?;
        }
        let simulation = Simulation::on(self.machine.clone(), self.pes);
        let simulation = simulation.heap_bytes(program.heap_bytes());
        let simulation = match self.flow {
            FlowControl::Credits => simulation,
            FlowControl::None => simulation.window(ENDLESS),
        };
        let calls_ns = program.simulate_on(&simulation)?.calls_ns.into_iter();
        let timed_ns = calls_ns.skip(before).take(timed);
        let ns = timed_ns.sum::<f64>() / timed as f64;
        Ok(Best { work: Work::of(&query, candidate), ns })
    }

    /// Returns the time of a reduction in a row of them.
    pub(super) fn reduce(&self, sync: SyncModes, bytes: usize, by: &Candidate) -> Result<Best> {
        self.timed(measure::reduce(sync, self.pes, bytes), by)
    }

    /// Returns the best tree of each size, in ascending order of sizes.
    pub(super) fn best_trees(
        &self,
        way: Way,
        sync: SyncModes,
        sizes_bytes: &[usize],
    ) -> Result<Vec<Best>> {
        let mut radices: Vec<u64> = radices(self.pes).collect();
        let mut bests = Vec::new();
        for &bytes in sizes_bytes {
            let mut trees = Vec::new();
            for &radix in &radices {
                trees.push((radix, self.reduce(sync, bytes, &way.tree(radix))?));
            }
            trees.sort_by(|(_, one), (_, other)| one.ns.total_cmp(&other.ns));
            let (_, best) = trees[0].clone();
            trees.retain(|(_, tree)| tree.ns <= TOO_SLOW * best.ns);
            radices = trees.into_iter().map(|(radix, _)| radix).collect();
            bests.push(best);
        }
        Ok(bests)
    }
}
