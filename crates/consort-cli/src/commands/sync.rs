//! `consort sync`: locks and delegation.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Result;
use consort_bench::{
    environment::Switches,
    page::Page,
    workloads::critical_sections::{advise, increments_of, measure, show},
};

use crate::{
    args, interrupt,
    measurement::Measurement,
    output::{self, progress::Progress},
};

/// The most threads.
const MOST_THREADS: usize = 1024;
/// The longest section, in nanoseconds.
const MOST_NS: usize = 1_000_000;

const EXAMPLES: &str = "\
Examples:
  consort sync advise --section 20 --threads 2
  consort sync advise --section 1000 --threads 16 --budget 20
  consort sync advise --section 100 --threads 8 --between 1000 --json";

/// Locks and delegation: which to use
#[derive(clap::Args, Debug)]
pub(crate) struct Sync {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Advise(Advise),
}

/// Measure which lock or scheme to use for critical sections, and say why
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
struct Advise {
    /// How long a section takes, in nanoseconds, without its lock
    #[arg(long, value_name = "NS", value_parser = args::counts(MOST_NS))]
    section: usize,
    /// How many threads enter sections
    #[arg(long, value_name = "N", value_parser = args::counts(MOST_THREADS))]
    threads: usize,
    /// The most iterations of a loop between two sections of a thread, at random
    #[arg(long, value_name = "N", default_value = "50")]
    between: u32,
    /// Seconds to measure for at most
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = args::seconds)]
    budget: Duration,
    /// Write one JSON object per line, to the file or else to standard output (`-`)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        default_missing_value = "-", value_parser = args::writable())]
    json: Option<PathBuf>,
}

impl Sync {
    /// # Errors
    /// When the system refuses threads, or the output cannot be written.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let Command::Advise(advise) = &self.command;
        advise.run()
    }
}

impl Advise {
    fn run(&self) -> Result<ExitCode> {
        let measurement = &Measurement::begin(u32::MAX, interrupt::stop_flag()?);
        let increments = increments_of(self.section)?;
        let Self { threads, between, budget, .. } = *self;
        let stop = &*measurement.stop;
        let progress = Progress::new("measuring");
        let show_share = |share| progress.show(share);
        let results = measure(increments, threads, between.into(), budget, stop, show_share);
        drop(progress);
        let results = match results {
            Err(error) => return interrupt::ending_with(error, stop),
            Ok(results) => results,
        };
        let mut page = Page::default();
        show(&mut page, &results);
        page.lines("\n");
        // At the end, where a terminal shows it.
        advise(&mut page, &results)?;
        let entries = results.entries();
        let text = || output::page(&page);
        measurement.tell(&Switches::default(), self.json.as_ref(), &entries, text)?;
        Ok(interrupt::ending(&measurement.stop))
    }
}
