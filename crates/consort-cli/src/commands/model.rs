//! `consort model`: evaluates models in closed form of machines that are not at hand.
//!
//! 1. `scc`: broadcasts on the Intel SCC, and the tables of the thesis that modelled it;
//! 2. `cluster`: collectives on clusters of any size.

mod cluster;
mod scc;

use anyhow::Result;

const EXAMPLES: &str = "\
Examples:
  consort model scc                    latency and throughput of broadcasts
  consort model scc --table 4.2        throughput, beside the thesis
  consort model cluster --pes 1000000  collectives of a million PEs, by LogGP";

/// Estimate by formulas how fast collectives are on a machine that is not at hand
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Model {
    #[command(subcommand)]
    machine: Machine,
}

#[derive(clap::Subcommand, Debug)]
enum Machine {
    Scc(scc::Scc),
    Cluster(cluster::Cluster),
}

impl Model {
    /// Evaluates the formulas and prints.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn run(&self) -> Result<()> {
        match &self.machine {
            Machine::Scc(scc) => scc.run(),
            Machine::Cluster(cluster) => cluster.run(),
        }
    }
}
