//! The same experiments on the paper's machines, simulated.

use anyhow::Result;
use consort::{Candidate, Collective, Rank, Sync};
use consort_sim::{Simulation, machines::Machine};

use crate::{bench::session::Mode, sim::program::Program};

/// Calls of a row before those that are timed, timed ones, and more, so that all PEs are at work
/// meanwhile.
const CALLS: (usize, usize, usize) = (16, 16, 32);
/// The same where each call begins when all have left the one before.
const STRICT_CALLS: (usize, usize, usize) = (2, 2, 0);
/// More calls than any row has: the paper's runtime does not keep PEs within a window.
const WINDOW: u64 = 1024;

/// A machine of the paper's, simulated, with so many of its threads.
pub(super) struct Simulated {
    machine: Machine,
    pes: u32,
}

impl Simulated {
    /// One of those that are shipped, with all its threads.
    pub(super) fn new(name: &str) -> Result<Self> {
        let machine = Machine::find(name)?;
        Ok(Self { pes: machine.pes(), machine })
    }

    /// What a reduction takes in a row of them, in nanoseconds.
    pub(super) fn reduce_ns(&self, sync: Sync, bytes: usize, candidate: &Candidate) -> Result<f64> {
        self.ns(Collective::Reduce, sync, bytes, candidate)
    }

    /// What a barrier takes in a row of them, in nanoseconds.
    pub(super) fn barrier_ns(&self, candidate: &Candidate) -> Result<f64> {
        self.ns(Collective::Barrier, Sync::STRICT, 0, candidate)
    }

    fn ns(
        &self,
        collective: Collective,
        sync: Sync,
        bytes: usize,
        candidate: &Candidate,
    ) -> Result<f64> {
        let (before, timed, after) = if sync == Sync::STRICT { STRICT_CALLS } else { CALLS };
        let program = Program {
            collective,
            candidate: candidate.clone(),
            sync,
            root: Rank(0),
            bytes,
            symmetric: collective == Collective::Reduce,
            mode: Mode::Throughput,
            calls: (before + timed + after) as u64,
        };
        let simulation = Simulation::on(self.machine.clone(), self.pes);
        let simulation = simulation.heap_bytes(2 * bytes).window(WINDOW);
        let played = program.play(&simulation, self.pes)?;
        Ok(played.calls_ns[before..before + timed].iter().sum::<f64>() / timed as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "prints"]
    fn explore() {
        let what = std::env::var("WHAT").unwrap_or_default();
        for (name, radices) in [("barcelona-x8", [1, 2, 4, 8, 16]), ("niagara2-x4", [1, 2, 4, 8, 16])] {
            if !what.contains("H6") { break }
            let machine = Simulated::new(name).unwrap();
            for sync in [Sync::LOOSE, Sync::STRICT] {
                for first in [1, 0] {
                    let begun = std::time::Instant::now();
                    let us = radices.map(|radix| {
                        let c = Candidate::new("knomial_get").with("radix", radix).with("largest_first", first);
                        machine.reduce_ns(sync, 8192, &c).unwrap() / 1e3
                    });
                    println!("{name} {sync} largest_first={first} {us:.1?} in {:?}", begun.elapsed());
                }
            }
        }
        for name in ["barcelona-x8", "clovertown-x2"] {
            if !what.contains("H45") { break }
            let machine = Simulated::new(name).unwrap();
            for sync in [Sync::LOOSE, Sync::STRICT] {
                for doubles in [1, 2, 4, 8, 16, 32, 64, 128, 1024, 8192] {
                    let bytes = doubles * 8;
                    let flat = machine.reduce_ns(sync, bytes, &Candidate::new("direct").with("block_bytes", 16384)).unwrap();
                    let us = [1, 2, 4, 8, 16].map(|radix| {
                        let c = Candidate::new("knomial_get").with("radix", radix).with("largest_first", 1);
                        machine.reduce_ns(sync, bytes, &c).unwrap()
                    });
                    println!("{name} {sync} {doubles} flat {flat:.0} trees {us:.0?}");
                }
            }
        }
        if what.contains("H1") {
            let machine = Simulated::new("niagara2-x4").unwrap();
            println!("flat {:.0}", machine.barrier_ns(&Candidate::new("flat")).unwrap());
            for radix in [1, 2, 4, 8, 16] {
                println!("{radix} {:.0}", machine.barrier_ns(&Candidate::new("knomial").with("radix", radix)).unwrap());
            }
        }
        if what.contains("H3") {
            let machine = Simulated::new("niagara2-x4").unwrap();
            for bytes in [8, 32, 128, 512, 2048, 8192, 65536] {
                for sync in [Sync::LOOSE, Sync::STRICT] {
                    let us = [1, 2, 4, 8, 16].map(|radix| {
                        let c = Candidate::new("knomial_get").with("radix", radix).with("largest_first", 1);
                        machine.reduce_ns(sync, bytes, &c).unwrap() / 1e3
                    });
                    println!("{sync} {bytes} {us:.2?}");
                }
            }
        }
    }
}
