//! The options of `consort-lab sim`.

use std::{path::PathBuf, time::Duration};

use clap::{builder::TypedValueParser, value_parser};
use consort::{
    sync_modes::SyncModes,
    tune::{Candidate, Collective},
};
use consort_bench::harness::Mode;

use super::candidates::{self, Values};
use consort_console::{args, results::Results};

/// The largest total size of the buffers of all PEs.
pub(super) const MOST_BYTES: usize = 4 << 30;

const EXAMPLES: &str = "\
Examples:
  consort-lab sim broadcast                            all algorithms on the SCC
  consort-lab sim broadcast --algorithm oc-bcast --param k=2,7,47 --lines 1,96
  consort-lab sim barrier --pes 16 --sync strict       on the first 16 cores
  consort-lab sim broadcast --bytes 8k,1M --mode throughput
  consort-lab sim broadcast --sweep --report sim.html  curves for a browser
  consort-lab sim broadcast --algorithm oc-bcast --lines 1 --trace call.json
  consort-lab sim all-reduce --machine cluster --pes 64 --bytes 8 --budget 20
  consort-lab sim reduce --machine ./mine.toml         on your machine";

/// Simulate a collective on another machine, and show where time goes
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sim {
    /// The collective to simulate: barrier, broadcast, reduce or all_reduce (a sum of integers)
    #[arg(value_name = "WHAT")]
    pub(super) what: Collective,
    /// A machine's name, or the path of a description that ends in .toml
    #[arg(long, value_name = "NAME|FILE", default_value = "scc")]
    pub(super) machine: String,
    /// Number of PEs, on the first hardware threads [default: all]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(super) pes: Option<u32>,
    /// An algorithm, as in oc_bcast or "oc_bcast(k=7,chunk_bytes=3072)"; may be repeated [default:
    /// all that the model estimates within 10x of the best, each with one set of values]
    #[arg(long, value_name = "ALGORITHM", value_parser = candidates::named)]
    pub(super) algorithm: Vec<Candidate>,
    /// Simulate all algorithms, with all parameter values that the tuner tries
    #[arg(long, conflicts_with = "algorithm")]
    pub(super) all_algorithms: bool,
    /// Approximate time to simulate, in seconds; simulations that do not fit are listed
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = args::seconds)]
    pub(super) budget: Duration,
    /// Values of a parameter, for the algorithms that have it, as in k=7 or k=2,7; may be repeated
    /// [default: one that can serve]
    #[arg(long, value_name = "NAME=VALUES")]
    pub(super) param: Vec<Values>,
    /// Sizes in lines of the machine [default: 1, and the number of lines in 8 KiB]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = lines)]
    pub(super) lines: Vec<usize>,
    /// Sizes in bytes, such as 8,8k,1M
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        value_parser = bytes,
        conflicts_with = "lines"
    )]
    pub(super) bytes: Vec<usize>,
    /// Sizes of 1, 2, 4, ... lines up to 1 MiB; --report draws their curves
    #[arg(long, conflicts_with_all = ["lines", "bytes", "trace"])]
    pub(super) sweep: bool,
    /// Synchronization modes: strict, loose, mine, or ENTRY/EXIT as in mine/all [default: mine]
    #[arg(long, value_name = "MODE")]
    pub(super) sync: Option<SyncModes>,
    /// The root: the PE that sends a broadcast or receives a reduction [default: 0]
    #[arg(long, value_name = "RANK")]
    pub(super) root: Option<u32>,
    /// Give the blocks of a vector variant random lengths, from 0 to twice the size
    #[arg(long)]
    pub(super) uneven: bool,
    /// Time each call alone, or calls in a row
    #[arg(long, value_parser = args::mode(), default_value = "latency")]
    pub(super) mode: Mode,
    /// Calls in each simulation [default: alone 3, in a row 9; with a trace or picture 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub(super) calls: Option<u64>,
    /// Seed of random delays: the same seed gives the same figures
    #[arg(long, value_name = "N", default_value = "0")]
    pub(super) seed: u64,
    /// Make all distances the shortest
    #[arg(long)]
    pub(super) near: bool,
    /// Disable queueing for shared resources
    #[arg(long)]
    pub(super) uncontended: bool,
    /// Use the parameters that the description marks as fitted to published results
    #[arg(long)]
    pub(super) fitted: bool,
    /// Write a trace of each PE's operations, for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE", value_parser = args::writable())]
    pub(super) trace: Option<PathBuf>,
    /// Draw the tree of messages and each PE's timeline as SVG
    #[arg(long, conflicts_with = "sweep", value_name = "FILE.svg", value_parser = svg())]
    pub(super) picture: Option<PathBuf>,
    #[command(flatten)]
    pub(super) results: Results,
}

/// Reads the path of an SVG picture to write.
fn svg() -> impl TypedValueParser<Value = PathBuf> {
    args::writable().try_map(|path| match path.extension() {
        Some(it) if !it.eq_ignore_ascii_case("svg") => {
            Err(format!("{} is not an SVG file: use a name that ends in .svg", path.display()))
        }
        _ => Ok(path),
    })
}

/// Reads a number of lines.
///
/// # Errors
/// A sentence that says what is allowed.
fn lines(text: &str) -> Result<usize, String> {
    let lines = text.parse().ok().filter(|lines| (1..=MOST_BYTES).contains(lines));
    lines.ok_or_else(|| format!("invalid number of lines `{text}`: use 1 or more"))
}

/// Reads a size in bytes.
///
/// # Errors
/// A sentence that says what is allowed.
fn bytes(text: &str) -> Result<usize, String> {
    let bytes = args::size(text)?;
    if bytes == 0 { Err("invalid size 0: use 1 byte or more".to_owned()) } else { Ok(bytes) }
}
