//! The machines of Nishtala and Yelick (HotPar 2009), simulated with all their threads.

use anyhow::Result;
use consort::{Candidate, Query, SyncModes};
use consort_sim::{Simulation, machines};

use super::measure::{self, Best, RADICES};
use crate::{
    harness::{Mode, Work},
    simulation::Program,
};

/// The paper's machines, with the threads and sockets of its table 1. This one has 256 threads.
pub const NIAGARA2: &str = "niagara2-x4";
/// 32 threads.
pub const BARCELONA: &str = "barcelona-x8";
/// 8 threads.
pub const CLOVERTOWN: &str = "clovertown-x2";

/// The calls in a row: those before the timed ones, the timed ones, and those after them, so that
/// all PEs are busy during the timed ones.
const CALLS: (usize, usize, usize) = (8, 8, 32);
/// The same for calls that each begin when all PEs have left the one before.
const STRICT_CALLS: (usize, usize, usize) = (2, 2, 0);
/// More calls than any row has.
const WINDOW: u64 = 1024;
/// A tree this many times slower than the best at one size is not tried at larger ones.
const HOPELESS: f64 = 1.5;

/// A simulated machine of the paper.
pub(super) struct Machine {
    machine: machines::Machine,
    pub(super) pes: u32,
}

/// The paper's tree.
pub(super) fn tree(radix: u64) -> Candidate {
    Candidate::new("knomial_get").with("radix", radix).with("largest_first", 1)
}

impl Machine {
    pub(super) fn new(name: &str) -> Result<Self> {
        let machine = machines::Machine::find(name)?;
        Ok(Self { pes: machine.pes(), machine })
    }

    /// The time of a call in a row of them.
    pub(super) fn timed(&self, query: Query, candidate: &Candidate) -> Result<Best> {
        let is_strict = query.sync == SyncModes::STRICT;
        let (before, timed, after) = if is_strict { STRICT_CALLS } else { CALLS };
        let (mode, calls) = (Mode::Throughput, (before + timed + after) as u64);
        let program = Program { mode, calls, ..Program::once(query, candidate) };
        let simulation = Simulation::on(self.machine.clone(), self.pes);
        let simulation = simulation.heap_bytes(2 * program.bytes()).window(WINDOW);
        let timed_ns = &program.play(&simulation)?.calls_ns[before..before + timed];
        let ns = timed_ns.iter().sum::<f64>() / timed as f64;
        Ok(Best { work: Work::of(&query, candidate), ns })
    }

    /// The time of a reduction in a row of them.
    pub(super) fn reduce(&self, sync: SyncModes, bytes: usize, by: &Candidate) -> Result<Best> {
        self.timed(measure::reduce(sync, self.pes, bytes), by)
    }

    /// The best tree of each size, in ascending order of sizes.
    pub(super) fn best_trees(&self, sync: SyncModes, sizes_bytes: &[usize]) -> Result<Vec<Best>> {
        let mut radices: Vec<u64> =
            RADICES.into_iter().filter(|&radix| radix < u64::from(self.pes)).collect();
        let mut bests = Vec::new();
        for &bytes in sizes_bytes {
            let mut trees = Vec::new();
            for &radix in &radices {
                trees.push((radix, self.reduce(sync, bytes, &tree(radix))?));
            }
            trees.sort_by(|(_, one), (_, other)| one.ns.total_cmp(&other.ns));
            let (_, best) = trees[0].clone();
            trees.retain(|(_, tree)| tree.ns <= HOPELESS * best.ns);
            radices = trees.into_iter().map(|(radix, _)| radix).collect();
            bests.push(best);
        }
        Ok(bests)
    }
}
