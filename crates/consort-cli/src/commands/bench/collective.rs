//! `consort bench collective`.

use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use consort::{
    sync_modes::{SyncMode, SyncModes},
    tune::Collective,
};
use consort_bench::harness::Mode;
use consort_console::{args, refuse, require};

use super::calls::{CallOptions, Data};

const EXAMPLES: &str = "\
Examples:
  consort bench collective broadcast --bytes 8,8k,1M        three sizes
  consort bench collective all_reduce --peers libgomp,mpi   OpenMP and MPI
  consort bench collective all_reduce --fabric mpi --pes 2  PEs by mpirun
  consort bench collective scan --sync loose,strict         two modes
  consort bench collective all_to_all --all-algorithms      each that can serve
  consort bench collective reduce --bytes 8 --csv           for a spreadsheet";

/// The largest number of buffers that are used in turn.
const MOST_BUFFERS: usize = 1 << 20;
/// The default sizes.
const SIZES_BYTES: [usize; 3] = [8, 8 << 10, 1 << 20];

/// Time a collective, next to hardware limits and other libraries
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
// The help fits a screen without it.
#[command(mut_arg("until_decided", |option| option.hide_short_help(true)))]
pub(super) struct CollectiveBench {
    /// broadcast, reduce, all_reduce, scan and so on
    ///
    /// The operation. Those that combine add doubles.
    #[arg(value_name = "COLLECTIVE")]
    pub(super) collective: Collective,
    /// Sizes of a block [default: 8,8k,1M]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = args::block)]
    bytes: Vec<usize>,
    /// strict, loose, mine (default), or as mine/all
    ///
    /// Synchronization modes to compare: strict, loose, mine, or ENTRY/EXIT as in mine/all.
    #[arg(long, value_name = "MODES", value_delimiter = ',')]
    sync: Vec<SyncModes>,
    /// Buffers in symmetric memory, or private slices [default: symmetric if a mode needs it]
    #[arg(long, value_enum, hide_short_help = true)]
    buffers: Option<Buffers>,
    /// Use N buffers in turn, instead of one that is reused
    #[arg(long, value_name = "N", default_value = "1", value_parser = args::counts(MOST_BUFFERS),
        hide_short_help = true)]
    fresh: usize,
    /// Rewrite the root's buffer, or in a reduce every PE's, before each call; with --mode latency
    #[arg(long, hide_short_help = true)]
    rewrite: bool,
    #[command(flatten)]
    pub(super) options: CallOptions,
}

/// The memory of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Buffers {
    /// Symmetric memory.
    Symmetric,
    /// Private slices.
    Private,
}

impl CollectiveBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        self.options.run(self.collective, &self.data()?)
    }

    /// Checks the options of the data.
    pub(super) fn data(&self) -> Result<Data<'_>> {
        if self.collective == Collective::Barrier {
            refuse!("a barrier moves no data: use `consort bench barrier`");
        }
        require!(
            !self.rewrite || self.options.mode == Mode::Latency,
            "--rewrite is for calls that are timed alone: add --mode latency"
        );
        let syncs = if self.sync.is_empty() { &[SyncModes::MINE] } else { &self.sync[..] };
        let leaves_early = syncs.iter().find(|sync| sync.exit == SyncMode::None);
        if let (Some(Buffers::Private), Some(sync)) = (self.buffers, leaves_early) {
            refuse!(
                "--sync {sync} may return before its data has moved, which private slices do not \
                 allow: use --buffers symmetric"
            );
        }
        Ok(Data {
            sizes_bytes: if self.bytes.is_empty() { &SIZES_BYTES } else { &self.bytes },
            syncs,
            symmetric: self.buffers == Some(Buffers::Symmetric) || leaves_early.is_some(),
            buffers: self.fresh,
            rewrite: self.rewrite,
        })
    }
}
