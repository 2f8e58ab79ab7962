//! `consort mpi`: prepares this machine's MPI for programs.

use anyhow::Result;
use clap::{Args, Subcommand};
use consort_mpi::{CachedShim, prepare};

use consort_console::output::print;

const EXAMPLES: &str = "\
Examples:
  consort mpi prepare      for the MPI whose mpicc is in PATH

Then `mpirun -n 4 PROGRAM` starts any program that calls Job::from_env. A
program prepares the MPI itself if it finds an mpicc. CONSORT_MPICC names
another compiler. The result is in your cache, or in the folder that
CONSORT_CACHE names. All machines of a job must see this folder, or each must
have one. Only you and root may be able to write there.";

/// Prepare the MPI of this machine for PEs on many machines
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Mpi {
    #[command(subcommand)]
    what: MpiCommand,
}

#[derive(Subcommand)]
enum MpiCommand {
    /// Compile the layer between programs and the MPI
    #[command(after_help = EXAMPLES)]
    Prepare,
}

impl Mpi {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<()> {
        let MpiCommand::Prepare = self.what;
        let CachedShim { path, version, .. } = prepare()?;
        let version = version.lines().next().unwrap_or_default();
        print(&format!("{version}\nprepared: {}\n", path.display()))
    }
}
