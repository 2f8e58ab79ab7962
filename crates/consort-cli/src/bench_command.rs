//! `consort bench`: what a collective takes here, beside the machine's limits and its peers.
//!
//! All algorithms, sizes and peers are timed in turn in one launch after another, with readings of
//! the limits in between, so that all of them see the same changes of the machine. An MPI is
//! another program: it runs once, after the others, between two readings of the transfer.
//!
//! 1. `options`: what was asked for, checked, as a list of work;
//! 2. `figure`: one line of JSON, or of a table, for each work and class of the transfer;
//! 3. `libraries`: figures of MPI libraries, or why there are none;
//! 4. `text`: the tables for people;
//! 5. `counting`: what is no collective but done by counting puts, timed and printed on its own;
//! 6. `online`, `overlap`: choices refined while a program runs, and computing beside a broadcast;
//! 7. `look_up`: asking compiled wisdom for a choice.

pub(crate) mod counting;
pub(crate) mod figure;
mod libraries;
mod look_up;
mod online;
mod options;
mod overlap;
mod text;

use std::{path::PathBuf, str::FromStr, time::Duration};

use anyhow::{Result, bail};
use clap::ValueEnum;
use consort::{Arrival, Candidate, Collective, Sync, Waiting};
use consort_native::limits::TransferClass;

use crate::{
    bench::{limits::Limit, progress::Progress, rounds::Rounds, session::Mode},
    output,
};
use counting::Workload;
use figure::Setting;
use options::Options;

const EXAMPLES: &str = "\
Examples:
  consort bench broadcast --bytes 8,8k,1M         times, beside the machine's limits
  consort bench scan --sync loose,strict          what the strictest modes cost over the loosest
  consort bench exchange --all-algorithms         every algorithm that can serve
  consort bench counted-all-to-all --bytes 8,4k   by counting puts, by flags and by a barrier
  consort bench stencil                           a pipeline, by counting puts and by flags
  consort bench online                            what refining choices gains and costs
  consort bench overlap --bytes 256k              computing beside a nonblocking broadcast
  consort bench look-up --budget 1                what asking wisdom takes, in time and memory";

/// Time a collective, beside the machine's limits and other libraries.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    /// What to time: a collective such as barrier or all_reduce (sums of doubles); or, by counting
    /// puts and otherwise, counted-put (a ping-pong), counted-all-to-all or stencil (Synch_p2p);
    /// refining choices while a program runs, online; a nonblocking broadcast, overlap; asking
    /// wisdom for a choice, look-up
    #[arg(value_name = "WHAT")]
    what: What,
    /// Sizes of a block, such as 8,8k,1M [default: 8,8k,1M]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = options::size)]
    bytes: Vec<usize>,
    /// Number of PEs [default: one for each usable core, two at least]
    #[arg(long, value_name = "N")]
    pes: Option<u32>,
    /// Synchronization modes: strict, loose, mine, or ENTRY/EXIT as in mine/all [default: mine]
    #[arg(long, value_name = "MODES", value_delimiter = ',')]
    sync: Vec<Sync>,
    /// Time calls in a row, or each alone
    #[arg(long, value_enum, default_value_t = Mode::Throughput)]
    mode: Mode,
    /// An algorithm instead of what Consort chooses, as in "knomial(radix=4)"; may be repeated
    #[arg(long, value_name = "ALGORITHM")]
    algorithm: Vec<Candidate>,
    /// All algorithms, with all values of their parameters that the tuner tries
    #[arg(long, conflicts_with = "algorithm")]
    all_algorithms: bool,
    /// Buffers in symmetric memory or borrowed slices [default: symmetric if a mode needs it]
    #[arg(long, value_enum)]
    buffers: Option<Buffers>,
    /// So many buffers in turn, instead of one that is reused
    #[arg(long, value_name = "N", default_value = "1")]
    fresh: usize,
    /// Rewrite the root's buffer, or in a reduce everyone's, before each call; latency only
    #[arg(long)]
    rewrite: bool,
    /// PEs come to each call `together`, or `skewed`: each after random work of up to 2 us
    #[arg(long, value_name = "ARRIVAL", default_value_t = Arrival::Together)]
    arrival: Arrival,
    /// How PEs wait: spin, spin-yield or spin-yield-park [default: as suits the usable cores]
    #[arg(long, value_name = "POLICY")]
    waiting: Option<Waiting>,
    /// Seconds to measure for at most
    #[arg(long, value_name = "SECONDS", default_value = "4", value_parser = crate::topo::seconds)]
    budget: Duration,
    /// Another MPI library to compare with; may be repeated [default: the mpirun in PATH]
    #[arg(long, value_name = "MPIRUN")]
    mpi: Vec<PathBuf>,
    /// Show blocks of calls in this class of the transfer between cores
    #[arg(long, value_enum, default_value_t = Class::Both)]
    class: Class,
    /// Write one JSON object a line, to the file or else to standard output (`-`)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// What there is to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A collective.
    Collective(Collective),
    /// Something else, by counting puts and by what they replace.
    Counting(Workload),
    /// Refining choices while a program runs.
    Online,
    /// A nonblocking broadcast, and computing meanwhile.
    Overlap,
    /// Asking compiled wisdom for a choice.
    LookUp,
}

impl FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "online" => return Ok(Self::Online),
            "overlap" => return Ok(Self::Overlap),
            "look-up" => return Ok(Self::LookUp),
            _ => {}
        }
        text.parse().map(Self::Counting).or_else(|others| {
            let collective = text.parse().map(Self::Collective);
            collective.map_err(|error| format!("{error}, or {others}, online, overlap, look-up"))
        })
    }
}

/// Where the data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Buffers {
    /// In memory that all PEs reach.
    Symmetric,
    /// In slices of the caller's own.
    Borrowed,
}

/// Which blocks are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Class {
    /// Those with a transfer below 60 ns.
    Near,
    /// All others.
    Far,
    /// Both, each on its own.
    Both,
}

impl Class {
    fn shows(self, class: Option<TransferClass>) -> bool {
        match self {
            Self::Both => true,
            Self::Near => class != Some(TransferClass::Far),
            Self::Far => class != Some(TransferClass::Near),
        }
    }
}

impl Bench {
    /// Checks the options, measures and prints.
    ///
    /// # Errors
    /// When options contradict each other, nothing could be measured, or the file to write cannot
    /// be written.
    pub(crate) fn run(&self) -> Result<()> {
        let what = match self.what {
            What::Collective(what) => what,
            What::Counting(workload) => return counting::run(self, workload),
            What::Online => return online::run(self),
            What::Overlap => return overlap::run(self),
            What::LookUp => return look_up::run(self),
        };
        let options = Options::of(self, what)?;
        let rounds = Rounds {
            session: options.session.clone(),
            conditions: options.conditions,
            limits: limits(what),
            sizes_bytes: &options.bulk_bytes,
        };
        let progress = Progress::new(what.name());
        let collected = rounds.run(|share| progress.show(share))?;
        progress.rename("MPI");
        let libraries = libraries::figures(&options, &self.mpi);
        drop(progress);

        let setting = Setting::new(&options, collected.waiting);
        let mut figures = Vec::new();
        for (work, timing) in options.session.work.iter().zip(&collected.timings) {
            figures.extend(setting.figures(work, timing, &collected.limits));
        }
        if !figures.iter().any(|figure| figure.is_ours() && figure.median_ns.is_some()) {
            let why = collected.timings.iter().find_map(|timing| timing.error.as_ref());
            bail!(
                "nothing was measured: {}",
                why.map_or(
                    "the machine changed in the midst of every block; try again when it is idle"
                        .into(),
                    |e| e.to_string()
                )
            );
        }
        figures.extend(libraries);
        figures.extend(setting.limit_figures(&options.bulk_bytes, &collected));
        figures.retain(|figure| self.class.shows(figure.c2c_class));
        match &self.json {
            None => output::print(&text::page(&setting, &figures)),
            Some(path) => output::write_json_lines(path, &figures),
        }
    }
}

/// The limits of bandwidth that matter to a collective.
fn limits(what: Collective) -> &'static [Limit] {
    match what {
        Collective::Barrier => &[],
        what if what.combines() => &[Limit::Copy, Limit::Pull, Limit::Combine, Limit::PullCombine],
        _ => &[Limit::Copy, Limit::Pull],
    }
}
