//! The options of all applications.

use std::path::PathBuf;

use anyhow::Result;
use consort::{Pe, Pes};

/// The options that all applications have.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// PEs, if the program is started alone: threads of it. `consort run` and `mpirun` say their
    /// own number
    #[arg(short = 'n', long, value_name = "PES", default_value_t = 4)]
    pub pes: u32,

    /// Verify the result by other means, and fail if it is wrong
    #[arg(long)]
    pub check: bool,

    /// Runs of which all times are told
    #[arg(long, value_name = "RUNS", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,

    /// Write a picture of what each PE does when in the last run
    #[arg(long, value_name = "FILE.svg")]
    pub timeline: Option<PathBuf>,

    /// Give each PE a second thread, which moves its nonblocking calls on while it computes
    #[arg(long)]
    pub helpers: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

impl Common {
    /// Runs an application on its PEs, and returns what the first of this process with a result
    /// has.
    ///
    /// # Errors
    /// Those of `program`, and of [`Pes::run`].
    pub fn run<R: Send>(
        &self,
        program: impl Fn(&Pe) -> Result<Option<R>> + Sync,
    ) -> Result<Option<R>> {
        let pes = Pes::from_env(self.pes);
        let pes = if self.helpers { pes.helper_threads() } else { pes };
        Ok(pes.try_run(program)?.into_iter().find_map(|(_, result)| result))
    }
}
