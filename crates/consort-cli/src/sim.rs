//! `consort sim`: what a collective takes on a machine that is described, not had.
//!
//! 1. `options`: what was asked for, checked, as a list of programs; `candidates`: the algorithms;
//! 2. `program`: what the PEs of a simulation run; `simulated`: what it came to, a call;
//! 3. `report`: the tables for people; `curves`: times by size, drawn;
//! 4. `picture`: who had it from whom (`spread`), and what each PE did when; `svg`: its elements.

pub(crate) mod announcements;
mod candidates;
pub(crate) mod contention;
mod curves;
mod options;
mod picture;
pub(crate) mod program;
mod report;
mod simulated;
mod spread;
mod svg;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::value_parser;
use consort::{Candidate, Collective, Sync};

use self::{candidates::Values, options::Options, simulated::Simulated};
use crate::{
    bench::{progress::Progress, session::Mode},
    bytes, output,
};

const EXAMPLES: &str = "\
Examples:
  consort sim broadcast                             all broadcasts on the Intel SCC, 48 cores
  consort sim broadcast --algorithm oc-bcast --param k=2,7,47 --lines 1,96
  consort sim barrier --pes 16 --sync strict        on its first 16 cores
  consort sim broadcast --bytes 8k,1M --mode throughput
  consort sim broadcast --algorithm oc-bcast --sweep --picture curves.svg
  consort sim broadcast --algorithm oc-bcast --lines 1 --picture call.svg --trace call.json
  consort sim reduce --machine ./mine.toml          `consort machines` shows the machines";

/// Simulate a collective on a machine that is not here, and tell where its time goes
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sim {
    /// What to simulate: barrier, broadcast, reduce or all_reduce (a sum of integers)
    #[arg(value_name = "WHAT")]
    what: Collective,
    /// A machine's name, or the path of a description that ends in .toml
    #[arg(long, value_name = "NAME|FILE", default_value = "scc")]
    machine: String,
    /// Number of PEs, on the first hardware threads [default: all]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pes: Option<u32>,
    /// An algorithm, as in oc_bcast or "oc_bcast(k=7,chunk_bytes=3072)"; may be repeated
    /// [default: all, each with one set of values]
    #[arg(long, value_name = "ALGORITHM", value_parser = candidates::named)]
    algorithm: Vec<Candidate>,
    /// All algorithms, with all values of their parameters that the tuner tries
    #[arg(long, conflicts_with = "algorithm")]
    all_algorithms: bool,
    /// Values of a parameter, for the algorithms that have it, as in k=7 or k=2,7; may be repeated
    /// [default: one that can serve]
    #[arg(long, value_name = "NAME=VALUES")]
    param: Vec<Values>,
    /// Sizes in lines of the machine [default: 1, and what 8 KiB are]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = options::lines)]
    lines: Vec<usize>,
    /// Sizes in bytes, such as 8,8k,1M
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        value_parser = options::bytes,
        conflicts_with = "lines"
    )]
    bytes: Vec<usize>,
    /// Sizes of 1, 2, 4, ... lines up to 1 MiB, and their curves
    #[arg(long, conflicts_with_all = ["lines", "bytes", "trace"])]
    sweep: bool,
    /// Synchronization modes: strict, loose, mine, or ENTRY/EXIT as in mine/all [default: mine]
    #[arg(long, value_name = "MODE")]
    sync: Option<Sync>,
    /// The PE that a broadcast comes from, or a reduction goes to [default: 0]
    #[arg(long, value_name = "RANK")]
    root: Option<u32>,
    /// Time each call alone, or calls in a row
    #[arg(long, value_enum, default_value_t = Mode::Latency)]
    mode: Mode,
    /// Calls of each simulation [default: alone 3, in a row 9; with a trace or picture of calls 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000_000))]
    calls: Option<u64>,
    /// What random delays are drawn from: the same seed, the same figures
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// All distances the shortest
    #[arg(long)]
    near: bool,
    /// Nobody queues for what others use
    #[arg(long)]
    uncontended: bool,
    /// With what the description says is fitted to published outcomes
    #[arg(long)]
    fitted: bool,
    /// Write what each PE did when, for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Draw as SVG who had it from whom and what each PE did when; with --sweep, the curves
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Write one JSON object a simulation, to the file or else to standard output (`-`)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

impl Sim {
    /// Checks the options, simulates, writes files and prints.
    ///
    /// # Errors
    /// When options contradict each other, nothing of the kind can be simulated, or a file cannot
    /// be written.
    pub(crate) fn run(&self) -> Result<()> {
        let Options { conditions, simulation, programs, unable } = Options::of(self)?;
        // Nobody waits for a simulation to hear that its outcome cannot be kept.
        let json = self.json.as_ref().filter(|path| path.as_os_str() != "-");
        for path in [self.trace.as_ref(), self.picture.as_ref(), json].into_iter().flatten() {
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let progress = Progress::new(&format!("simulating {}", conditions.machine.name));
        let weight = |bytes: usize| bytes as f64 + 4096.0;
        let whole: f64 = programs.iter().map(|program| weight(program.bytes)).sum();
        let (mut done, mut all) = (0.0, Vec::new());
        for program in programs {
            let share = weight(program.bytes) / whole;
            let show = |part: f64| progress.show(done + part * share);
            all.push(Simulated::of(program, &simulation, conditions.pes, &show)?);
            done += share;
        }
        drop(progress);

        if let (Some(path), [only]) = (&self.trace, &all[..]) {
            let mut text = Vec::new();
            only.trace.write(&mut text)?;
            write(path, &text)?;
        }
        if let Some(path) = &self.picture {
            let drawn = match &all[..] {
                [only] if !self.sweep => picture::picture(&conditions, only),
                _ => curves::picture(&conditions, &all),
            };
            write(path, drawn.as_bytes())?;
        }
        match &self.json {
            Some(path) => {
                let records: Vec<_> = all.iter().map(|one| one.record(&conditions)).collect();
                output::write_json_lines(path, &records)
            }
            None => output::print(&report::page(&conditions, &all, &unable, self.sweep)),
        }
    }
}

fn write(path: &Path, text: &[u8]) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// A size for people: in lines, where it is whole ones, and in bytes.
fn size(bytes: usize, line_bytes: usize) -> String {
    let shown = bytes::shown(bytes as u64);
    match bytes / line_bytes {
        _ if !bytes.is_multiple_of(line_bytes) => shown,
        1 => format!("1 line, {shown}"),
        lines => format!("{lines} lines, {shown}"),
    }
}
