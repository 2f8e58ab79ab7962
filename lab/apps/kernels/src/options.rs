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
use consort::{Pe, Pes, Rank};

use crate::{grid::Shape, mode::Mode};

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

/// The options of applications on matrices whose blocks are dealt to a grid of PEs.
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

    /// Broadcast panels while those before them are used (default)
    #[arg(long, conflicts_with = "blocking")]
    pub overlap: bool,

    /// Broadcast panels when they are needed, by blocking calls
    #[arg(long)]
    pub blocking: bool,
}

/// Extents of matrices.
pub const EXTENTS: RangeInclusive<usize> = 1..=(1 << 20) - 1;

fn extent() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(*EXTENTS.start() as u64..=*EXTENTS.end() as u64)
}

impl BlockCyclic {
    /// When panels are broadcast.
    #[must_use]
    pub fn mode(&self) -> Mode {
        if self.blocking { Mode::Blocking } else { Mode::Overlap }
    }
}

impl Common {
    /// Runs an application on its PEs. Returns what PE 0 returns, if it is one of this process.
    ///
    /// # Errors
    /// Those of `program`, and of [`Pes::run`]; before anything runs, when the picture could not be
    /// written by the process of PE 0.
    pub fn run<R: Send>(&self, program: impl Fn(&Pe) -> Result<R> + Sync) -> Result<Option<R>> {
        let pes = Pes::from_env(self.pes);
        let pes = if self.helpers { pes.helper_threads() } else { pes };
        let program = |pe: &Pe| {
            if let Some(file) = self.timeline.as_ref().filter(|_| pe.world().rank() == Rank(0)) {
                try_to_write(file).with_context(|| unwritten(file))?;
            }
            program(pe)
        };
        let results = pes.try_run(program)?.into_iter();
        Ok(results.filter(|&(rank, _)| rank == Rank(0)).map(|(_, result)| result).next())
    }

    /// Checks a result if that is wanted, and returns what the check says.
    ///
    /// # Errors
    /// Those of the check, among them what is wrong with the result.
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

/// What is said of a picture that cannot be written.
pub(crate) fn unwritten(file: &Path) -> String {
    format!("cannot write the time line to {}", file.display())
}

/// Tries whether a file can be written, and leaves what is there as it is.
fn try_to_write(file: &Path) -> io::Result<()> {
    let is_new = !file.exists();
    OpenOptions::new().append(true).create(true).open(file)?;
    if is_new { fs::remove_file(file) } else { Ok(()) }
}
