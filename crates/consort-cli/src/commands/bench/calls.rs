//! `consort bench barrier` and `consort bench collective`: their options, and the resulting list of
//! work.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Result;
use clap::ValueEnum;
use consort::{
    Waiting,
    launch::Fabric,
    sync_modes::{SyncMode, SyncModes},
    tune::{Algorithms, Arrival, Candidate, Collective},
};
use consort_bench::{
    harness::{Communication, Conditions, Mode, ServedBy, Session, Work},
    query_json::sums,
};
use consort_console::{args, refuse, require, usage};
use consort_tuner::{Catalog, distinct};

use super::{
    communication::Plan,
    peers::{self, Peers},
    presenter::{OutputOptions, usual_pes},
};

const BARRIER_EXAMPLES: &str = "\
Examples:
  consort bench barrier                          next to hardware limits
  consort bench barrier --peers libgomp,mpi      next to OpenMP and MPI
  consort bench barrier --fabric processes       PEs are processes
  consort bench barrier --fabric mixed --pes 4   those of a host share memory
  consort bench barrier --report barrier.html    plots and tables for a browser";

/// Time a barrier, next to hardware limits and other libraries
#[derive(clap::Args)]
#[command(after_long_help = BARRIER_EXAMPLES)]
pub(super) struct BarrierBench {
    #[command(flatten)]
    pub(super) options: CallOptions,
}

/// A barrier has one synchronization mode, and no bytes.
pub(super) const NO_DATA: Data<'static> = Data {
    sizes_bytes: &[0],
    syncs: &[SyncModes::STRICT],
    symmetric: false,
    buffers: 1,
    rewrite: false,
};

impl BarrierBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        self.options.run(Collective::Barrier, &NO_DATA)
    }
}

const COLLECTIVE_EXAMPLES: &str = "\
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
#[command(after_long_help = COLLECTIVE_EXAMPLES)]
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

/// How calls of a collective are timed, and what they are compared with.
#[derive(clap::Args)]
pub(super) struct CallOptions {
    /// PEs [default: one for each usable core]
    #[arg(long, value_name = "N", value_parser = args::pes)]
    pes: Option<u32>,
    /// threads (default), processes, mpi or mixed
    ///
    /// The PEs: threads; processes of `consort run`; mpi, processes of the mpirun in PATH; or mixed,
    /// the same, with shared memory on each machine. mpi:2 has 2 PEs per process, and mpi:2:in-turn
    /// deals ranks to processes in turn.
    #[arg(long, value_name = "FABRIC", default_value = "threads", hide_default_value = true)]
    pub(super) fabric: Fabric,
    /// throughput (default): in a row; latency: alone
    #[arg(long, value_parser = args::mode(), default_value = "throughput",
        hide_default_value = true, hide_possible_values = true, hide_short_help = true)]
    pub(super) mode: Mode,
    /// Such as knomial(radix=4); may be repeated
    ///
    /// An algorithm instead of Consort's choice, such as "knomial(radix=4)"; may be repeated.
    #[arg(long, value_name = "ALGORITHM")]
    algorithm: Vec<Candidate>,
    /// All algorithms with all their parameters
    ///
    /// All algorithms, with all values of their parameters that the tuner tries. If several
    /// candidates are equivalent for this number of PEs, only the first.
    #[arg(long, conflicts_with = "algorithm")]
    all_algorithms: bool,
    /// PEs arrive at each call `together`, or `skewed`: each after random work of up to 2 us
    #[arg(long, value_name = "ARRIVAL", default_value_t = Arrival::Together,
        hide_short_help = true)]
    arrival: Arrival,
    /// How PEs wait: spin, spin-yield or spin-yield-park [default: spin-yield-park]
    #[arg(long, value_name = "POLICY", hide_short_help = true)]
    waiting: Option<Waiting>,
    /// Libraries to compare with, such as std,mpi
    ///
    /// Compares with these libraries only: those of threads, libgomp and libomp (OpenMP by gcc and
    /// by clang), mpi, or none [default: all that have such a call; for processes, mpi].
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = peers::parser(),
        hide_possible_values = true)]
    peers: Vec<String>,
    /// Another MPI library to compare with; may be repeated [default: the mpirun in PATH]
    #[arg(long, value_name = "MPIRUN", hide_short_help = true)]
    mpi: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputOptions,
}

/// The data of calls.
pub(super) struct Data<'d> {
    pub(super) sizes_bytes: &'d [usize],
    pub(super) syncs: &'d [SyncModes],
    /// Whether the buffers are in symmetric memory.
    pub(super) symmetric: bool,
    /// The number of buffers that are used in turn.
    pub(super) buffers: usize,
    /// Whether the data is rewritten before each call.
    pub(super) rewrite: bool,
}

impl CallOptions {
    /// Checks the options, measures and prints.
    ///
    /// # Errors
    /// When options contradict each other, nothing could be measured, or the output file cannot be
    /// written.
    pub(super) fn run(&self, collective: Collective, data: &Data<'_>) -> Result<ExitCode> {
        let (pes, peers) = self.checked(collective)?;
        self.output.run(pes, |presenter| {
            let fabric = presenter.measurement.found(self.fabric, pes)?;
            let budget = presenter.budget;
            self.plan(collective, data, (fabric, pes), peers.clone(), budget).measure(presenter)
        })
    }

    /// Returns the number of PEs, and the libraries to compare with.
    pub(super) fn checked(&self, collective: Collective) -> Result<(u32, Peers)> {
        let pes = self.pes.unwrap_or_else(usual_pes);
        if let Some(shape) = self.fabric.shape() {
            require!(
                self.mode == Mode::Throughput,
                "--mode latency needs a clock that all PEs share: leave it out with --fabric {}",
                self.fabric
            );
            args::check_environment(self.fabric)?;
            args::check_processes(shape, pes)?;
        }
        for candidate in &self.algorithm {
            let described = Algorithms::of(self.fabric).describe(collective, &candidate.algorithm);
            let checked = described.and_then(|described| described.check(candidate));
            checked.map_err(usage::invalid_argument)?;
        }
        let of_threads = (self.fabric == Fabric::Threads).then_some(collective);
        Ok((pes, Peers::choose(&self.peers, &self.mpi, of_threads)?))
    }

    /// Lists the work by size, then by mode and algorithm, then by peer.
    pub(super) fn plan(
        &self,
        collective: Collective,
        data: &Data<'_>,
        (fabric, pes): (Fabric, u32),
        peers: Peers,
        budget: Duration,
    ) -> Plan {
        let mut work = Vec::new();
        for &bytes in data.sizes_bytes {
            let query = |sync| sums(collective, sync, pes, bytes, data.symmetric);
            for query in data.syncs.iter().copied().map(query) {
                let asked: Vec<Option<Candidate>> = if self.all_algorithms {
                    let algorithms = Algorithms::of(fabric);
                    distinct(algorithms, &query, algorithms.candidates(&query)).map(Some).collect()
                } else if self.algorithm.is_empty() {
                    vec![None]
                } else {
                    self.algorithm.iter().cloned().map(Some).collect()
                };
                work.extend(asked.into_iter().map(|by| Work::Call(query, ServedBy::Consort(by))));
            }
            let query = query(SyncModes::STRICT);
            work.extend(peers.threads.iter().map(|&index| Work::of_peer(&query, index)));
        }
        let (waiting, mode) = (self.waiting, self.mode);
        Plan {
            what: Communication::Collective(collective),
            session: Session { fabric, pes, waiting, work, mode, budget },
            conditions: Conditions {
                arrival: self.arrival,
                buffers: data.buffers,
                rewrite: data.rewrite,
            },
            symmetric: data.symmetric,
            peers,
        }
    }
}
