//! The options of `consort bench`.

use std::{path::PathBuf, rc::Rc, str::FromStr, time::Duration};

use anyhow::Result;
use clap::ValueEnum;
use consort::{Algorithms, Arrival, Candidate, Collective, Fabric, SyncModes, Waiting};
use consort_bench::{
    harness::{Communication, Mode, Pattern},
    workloads::{counting::Workload, critical_sections::Subject},
};
use consort_tuner::TransferClass;

use super::compare::Old;
use consort_console::{args, refuse, results::Results};

/// The most threads that a critical section is measured with.
const MOST_THREADS: usize = 1024;
/// The most increments of an operation.
const MOST_INCREMENTS: usize = 1_000_000;

const EXAMPLES: &str = "\
Examples:
  consort bench broadcast --bytes 8,8k,1M        times, beside hardware limits
  consort bench all_reduce --peers libgomp,mpi   beside OpenMP and MPI
  consort bench barrier --fabric processes       PEs as processes
  consort bench all_reduce --fabric mpi --pes 2  PEs started by mpirun
  consort bench barrier --fabric mixed --pes 4   those of a host share memory
  consort bench scan --sync loose,strict         strict modes against loose ones
  consort bench all_to_all --all-algorithms      every algorithm that can serve
  consort bench barrier --report barrier.html    plots and tables for a browser
  consort bench reduce --bytes 8 --csv           for a spreadsheet
  consort bench put-signal --fabric processes    a round trip, beside MPI
  consort bench put-rate --fabric mpi            64 small puts, beside MPI
  consort bench put-bandwidth --bytes 64k,1M     large puts, beside the same
  consort bench counted-all-to-all --bytes 8,4k  counting puts against flags
  consort bench stencil                          a pipeline, in both ways
  consort bench online                           gain and cost of refinement
  consort bench overlap --bytes 256k             computing beside a broadcast
  consort bench look-up --budget 1               time and memory of a choice
  consort bench region --pes 2,8                 parallel regions of libraries
  consort bench sharing                          a job beside another
  consort bench openshmem                        beside another OpenSHMEM
  consort bench lock --threads 2 --between 0     beside parking_lot and std
  consort bench delegate --section 20            combining, servers, latency
  consort bench counter --threads 1,2            both, and fetch_add
  consort bench stack --threads 2 --between 0    a stack by each, and Treiber's
  consort bench queue --threads 2,8              a queue by each, crossbeam's";

/// Time a collective, a lock, a stack or a queue, beside the machine's limits and other libraries.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub(crate) struct Bench {
    /// The work to time: a collective such as barrier or all_reduce (sums of doubles); operations
    /// of one PE on the memory of another, beside messages of MPI: put-signal (a round trip),
    /// put-rate (64 puts and a quiet) or put-bandwidth (16 puts and a quiet); a program with
    /// counting puts: counted-put (a ping-pong), bundle (the same beside loops written by
    /// hand that send data and count as one), counted-all-to-all or stencil (Synch_p2p);
    /// online (choices refined while a program runs), overlap (computation during a nonblocking
    /// broadcast), look-up (look-ups of choices in wisdom), region (parallel regions and
    /// barriers of threads, beside rayon, the standard library, hurdles and OpenMP), sharing (a
    /// job beside another or beside a busy thread, and the processor time of waits), openshmem
    /// (routines of C between two processes, beside the library of oshcc); a counter in critical
    /// sections of threads: lock (under each lock), delegate (by each scheme of
    /// delegation and combining) or counter (under all of them); or a container of threads: stack
    /// or queue (under all of them, without locks, and of crossbeam)
    #[arg(value_name = "WHAT")]
    pub(super) what: What,
    /// What the PEs are, of a collective or of operations of one PE on another's memory: threads;
    /// processes as `consort run` starts them; mpi, processes that the mpirun in PATH starts, mpi:2
    /// with 2 PEs in each, and mpi:2:in-turn if ranks are dealt to them in turn; or mixed, the
    /// same, but processes of one machine share memory
    #[arg(long, value_name = "FABRIC", default_value = "threads")]
    pub(super) fabric: Fabric,
    /// Sizes of a block or a message, such as 8,8k,1M [default: 8,8k,1M of a collective]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = args::block)]
    pub(super) bytes: Vec<usize>,
    /// Number of PEs; of region several, as in 2,8 [default: one for each usable core, two at
    /// least]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(super) pes: Vec<u32>,
    /// Synchronization modes: strict, loose, mine, or ENTRY/EXIT as in mine/all [default: mine]
    #[arg(long, value_name = "MODES", value_delimiter = ',')]
    pub(super) sync: Vec<SyncModes>,
    /// Time calls in a row, or each alone
    #[arg(long, value_parser = args::mode(), default_value = "throughput")]
    pub(super) mode: Mode,
    /// An algorithm instead of Consort's choice, as in "knomial(radix=4)"; may be repeated
    #[arg(long, value_name = "ALGORITHM")]
    pub(super) algorithm: Vec<Candidate>,
    /// All algorithms, with all values of their parameters that the tuner tries; of candidates that
    /// do the same among so many PEs, the first
    #[arg(long, conflicts_with = "algorithm")]
    pub(super) all_algorithms: bool,
    /// Buffers in symmetric memory or private slices [default: symmetric if a mode needs it]
    #[arg(long, value_enum)]
    pub(super) buffers: Option<Buffers>,
    /// Use N buffers in turn, instead of one that is reused
    #[arg(long, value_name = "N", default_value = "1")]
    pub(super) fresh: usize,
    /// Rewrite the root's buffer, or in a reduce every PE's, before each call; latency only
    #[arg(long)]
    pub(super) rewrite: bool,
    /// PEs arrive at each call `together`, or `skewed`: each after random work of up to 2 us
    #[arg(long, value_name = "ARRIVAL", default_value_t = Arrival::Together)]
    pub(super) arrival: Arrival,
    /// How PEs wait: spin, spin-yield or spin-yield-park [default: spin-yield-park]
    #[arg(long, value_name = "POLICY")]
    pub(super) waiting: Option<Waiting>,
    /// Seconds to measure for at most
    #[arg(long, value_name = "SECONDS", default_value = "4", value_parser = args::seconds)]
    pub(super) budget: Duration,
    /// Another MPI library to compare with; may be repeated [default: the mpirun in PATH]
    #[arg(long, value_name = "MPIRUN")]
    pub(super) mpi: Vec<PathBuf>,
    /// Only these other libraries: pthread, std, hurdles, libgomp, libomp (OpenMP by gcc and by
    /// clang), mpi, or none [default: all that have such a call; beside processes, mpi]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) peers: Vec<String>,
    /// Without MPI
    #[arg(long, conflicts_with = "mpi")]
    pub(super) no_mpi: bool,
    /// Of lock, delegate, counter, stack and queue: numbers of threads [default: powers of two up
    /// to 8 for each usable core]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = args::counts(MOST_THREADS))]
    pub(super) threads: Vec<usize>,
    /// Of lock, delegate and counter: increments of an operation, each of another number
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = args::counts(MOST_INCREMENTS))]
    pub(super) section: Option<usize>,
    /// Of lock, delegate, counter, stack and queue: the most iterations of a loop between two
    /// operations of a thread, at random [default: 50]
    #[arg(long, value_name = "N")]
    pub(super) between: Option<u32>,
    /// Show blocks of calls in this class of the transfer between cores
    #[arg(long, value_enum, default_value_t = Class::Both)]
    pub(super) class: Class,
    #[command(flatten)]
    pub(super) results: Results,
    /// Compare each row with that of an earlier run, which --json has written: faster, slower or
    /// the same, by the intervals of both
    #[arg(long, value_name = "OLD.json")]
    pub(super) compare: Option<PathBuf>,
    /// Exit with 3 if a row is slower than in the earlier run by more than this
    #[arg(long, value_name = "PERCENT", requires = "compare", value_parser = percent)]
    pub(super) fail_if_slower: Option<f64>,
    /// What --compare names, once it is read.
    #[arg(skip)]
    pub(super) old: Option<Rc<Old>>,
}

/// Reads a share in per cent.
///
/// # Errors
/// A sentence with the remedy.
fn percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches(['%', ' ']).parse().ok();
    let percent = percent.filter(|percent: &f64| percent.is_finite() && *percent >= 0.0);
    percent.ok_or_else(|| "use a number of per cent, as in 5 or 2.5".to_owned())
}

impl Bench {
    /// The number of PEs that was asked for, or one for each usable core, two at least.
    ///
    /// # Errors
    /// When several numbers were asked for.
    pub(super) fn pes(&self) -> Result<u32> {
        self.pes_or(Algorithms::here().cores().max(2))
    }

    /// The number of PEs that was asked for, or another one.
    ///
    /// # Errors
    /// When several numbers were asked for.
    pub(super) fn pes_or(&self, pes: u32) -> Result<u32> {
        match self.pes[..] {
            [] => Ok(pes),
            [pes] => Ok(pes),
            _ => refuse!("--pes: use one number; several are for region alone"),
        }
    }

    /// Whether no option is set that only collectives have.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain_beside_peers() && self.peers.is_empty()
    }

    /// The same, whatever the peers.
    pub(super) fn is_plain_beside_peers(&self) -> bool {
        let named = !self.algorithm.is_empty() || self.all_algorithms;
        !named && self.sync.is_empty() && self.mpi.is_empty() && !self.no_mpi
    }

    /// An option that critical sections do not have, if one is set.
    pub(super) fn beyond_critical_sections(&self) -> Option<&'static str> {
        let set = [
            ("--bytes", !self.bytes.is_empty()),
            ("--pes", !self.pes.is_empty()),
            ("--sync", !self.sync.is_empty()),
            ("--mode", self.mode != Mode::Throughput),
            ("--algorithm", !self.algorithm.is_empty()),
            ("--all-algorithms", self.all_algorithms),
            ("--buffers", self.buffers.is_some()),
            ("--fresh", self.fresh != 1),
            ("--rewrite", self.rewrite),
            ("--arrival", self.arrival != Arrival::Together),
            ("--waiting", self.waiting.is_some()),
            ("--mpi", !self.mpi.is_empty()),
            ("--peers", !self.peers.is_empty()),
            ("--no-mpi", self.no_mpi),
            ("--class", self.class != Class::Both),
        ];
        set.into_iter().find_map(|(name, is_set)| is_set.then_some(name))
    }

    /// The option that only critical sections have, if one is set.
    pub(super) fn of_critical_sections(&self) -> Option<&'static str> {
        let threads = (!self.threads.is_empty()).then_some("--threads");
        threads.or(self.section.map(|_| "--section")).or(self.between.map(|_| "--between"))
    }
}

/// The kinds of work to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A collective, or operations of one PE on the memory of another.
    Communication(Communication),
    /// A program with counting puts and with the operations that they replace.
    Counting(Workload),
    /// Choices that are refined while a program runs.
    Online,
    /// A nonblocking broadcast, with computation during it.
    Overlap,
    /// Look-ups of choices in compiled wisdom.
    LookUp,
    /// Parallel regions and barriers of threads.
    Region,
    /// Jobs on cores that others use too.
    Sharing,
    /// Routines of OpenSHMEM.
    OpenShmem,
    /// Locks and delegation, stacks and queues.
    CriticalSections(Subject),
}

impl What {
    /// Those of which there is one each.
    const OTHERS: [(&str, Self); 6] = [
        ("online", Self::Online),
        ("overlap", Self::Overlap),
        ("look-up", Self::LookUp),
        ("region", Self::Region),
        ("sharing", Self::Sharing),
        ("openshmem", Self::OpenShmem),
    ];
}

/// The names of all kinds of work on the command line.
pub(crate) fn names() -> Vec<&'static str> {
    let collectives = Collective::EVERY.into_iter().map(Collective::name);
    collectives
        .chain(Pattern::EVERY.map(Pattern::name))
        .chain(Workload::EVERY.map(Workload::name))
        .chain(What::OTHERS.map(|(name, _)| name))
        .chain(Subject::EVERY.map(Subject::name))
        .collect()
}

impl FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, what)) = Self::OTHERS.into_iter().find(|(name, _)| *name == text) {
            return Ok(what);
        }
        if let Some(subject) = Subject::EVERY.into_iter().find(|one| one.name() == text) {
            return Ok(Self::CriticalSections(subject));
        }
        let point_to_point = match text.parse::<Pattern>() {
            Ok(pattern) => return Ok(Self::Communication(Communication::PointToPoint(pattern))),
            Err(names) => names,
        };
        let counting = match text.parse() {
            Ok(workload) => return Ok(Self::Counting(workload)),
            Err(names) => names,
        };
        let collective = text.parse::<Collective>().map(Communication::Collective);
        collective.map(Self::Communication).map_err(|error| {
            format!(
                "{error}, or {point_to_point}, {counting}, online, overlap, look-up, region, \
                 sharing, openshmem, lock, delegate, counter, stack, queue"
            )
        })
    }
}

/// The memory of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Buffers {
    /// Symmetric memory.
    Symmetric,
    /// Private slices.
    Private,
}

/// The class of the blocks that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Class {
    /// Those with a transfer below 80 ns.
    Near,
    /// All others.
    Far,
    /// Both, each on its own.
    Both,
}

impl Class {
    pub(super) fn shows(self, class: Option<TransferClass>) -> bool {
        match self {
            Self::Both => true,
            Self::Near => class != Some(TransferClass::Far),
            Self::Far => class != Some(TransferClass::Near),
        }
    }
}
