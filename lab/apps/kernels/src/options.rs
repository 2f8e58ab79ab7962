//! The options of all applications.

use std::{
    error::Error,
    fs::{self, OpenOptions},
    io,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::builder::RangedU64ValueParser;
use consort::{Job, Pe, Rank};

use crate::{grid::Shape, mode::Mode};

/// The options that all applications have.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// PEs as threads, if the program is started alone; `consort run` and `mpirun` set the number
    /// themselves
    #[arg(short = 'n', long, value_name = "PES", default_value_t = 4)]
    pub pes: usize,

    /// Verify the result independently, and fail if it is wrong
    #[arg(long)]
    pub check: bool,

    /// Number of runs; all times are reported
    #[arg(long, value_name = "RUNS", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,

    /// Write a picture that shows when each PE computes, communicates and waits in the last run
    #[arg(long, value_name = "FILE.svg")]
    pub timeline: Option<PathBuf>,

    /// Give each PE a second thread that progresses its nonblocking calls while it computes
    #[arg(long)]
    pub helpers: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The options of applications on matrices whose blocks are distributed over a grid of PEs.
#[derive(Clone, Debug, clap::Args)]
pub struct BlockCyclic {
    /// Rows and columns of the matrices
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = extent())]
    pub size: usize,

    /// Rows and columns of a block
    #[arg(long, value_name = "B", default_value_t = 128, value_parser = extent())]
    pub block: usize,

    /// Rows and columns of the grid of PEs, as in 2x3 [default: the squarest]
    #[arg(long, value_name = "RxC")]
    pub grid: Option<Shape>,

    /// Broadcast panels while the previous ones are used (default)
    #[arg(long, conflicts_with = "blocking")]
    pub overlap: bool,

    /// Broadcast panels when they are needed, with blocking calls
    #[arg(long)]
    pub blocking: bool,
}

/// The allowed extents of matrices.
pub const EXTENTS: RangeInclusive<usize> = 1..=(1 << 20) - 1;

fn extent() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(*EXTENTS.start() as u64..=*EXTENTS.end() as u64)
}

impl BlockCyclic {
    /// Returns when panels are broadcast.
    #[must_use]
    pub fn mode(&self) -> Mode {
        if self.blocking { Mode::Blocking } else { Mode::Overlap }
    }
}

impl Common {
    /// Runs an application on its PEs. Returns the result of PE 0, if PE 0 is in this process.
    ///
    /// # Errors
    /// Those of `program` and of [`JobBuilder::run`](consort::JobBuilder::run). If the process of
    /// PE 0 cannot write the picture, it fails before anything runs.
    pub fn run<R: Send>(&self, program: impl Fn(&Pe) -> Result<R> + Sync) -> Result<Option<R>> {
        let pes = Job::from_env(self.pes);
        let pes = if self.helpers { pes.helper_threads() } else { pes };
        let program = |pe: &Pe| {
            if let Some(file) = self.timeline.as_ref().filter(|_| pe.world().rank() == Rank(0)) {
                try_to_write(file).with_context(|| unwritten(file))?;
            }
            program(pe)
        };
        let mut results = pes.try_run(program)?.into_ranked();
        Ok(results.find(|&(rank, _)| rank == Rank(0)).map(|(_, result)| result))
    }

    /// Checks a result if the options ask for it, and returns the text of the check.
    ///
    /// # Errors
    /// Those of the check, including a wrong result.
    pub fn checked<W: Error + Send + Sync + 'static>(
        &self,
        check: impl FnOnce() -> consort::Result<Result<String, W>>,
    ) -> Result<Option<String>> {
        if !self.check {
            return Ok(None);
        }
        Ok(Some(check()??))
    }
}

/// Returns the error message for a picture that cannot be written.
pub(crate) fn unwritten(file: &Path) -> String {
    format!("cannot write the time line to {}", file.display())
}

/// Tests whether a file can be written, and leaves its contents as they are.
fn try_to_write(file: &Path) -> io::Result<()> {
    let is_new = !file.exists();
    OpenOptions::new().append(true).create(true).open(file)?;
    if is_new { fs::remove_file(file) } else { Ok(()) }
}
