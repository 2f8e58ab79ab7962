//! `consort sync`: locks and delegation.

use std::{process::ExitCode, time::Duration};

use anyhow::Result;
use consort_bench::{
    environment::Switches,
    page::Page,
    workloads::critical_sections::{advise, increments_of, measure, show},
};
use consort_machine::topology::Topology;
use consort_report::Document;

use crate::section_plots;
use consort_console::{
    args, interrupt,
    measurement::Measurement,
    output::progress::Progress,
    report::{Findings, add_page},
    results::Results,
};

/// The largest number of threads.
const MOST_THREADS: usize = 1024;
/// The longest section, in nanoseconds.
const MOST_NS: usize = 1_000_000;

const EXAMPLES: &str = "\
Examples:
  consort sync advise
  consort sync advise --section 20 --threads 2
  consort sync advise --section 1000 --threads 16 --budget 20
  consort sync advise --section 100 --threads 8 --between 1000 --json
  consort sync advise --section 100 --threads 4 --report locks.html";

/// Locks and delegation: which to use
#[derive(clap::Args, Debug)]
pub(crate) struct Sync {
    #[command(subcommand)]
    command: SyncCommand,
}

#[derive(clap::Subcommand, Debug)]
enum SyncCommand {
    Advise(Advise),
}

/// Measure which lock or scheme to use for critical sections, and say why
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
struct Advise {
    /// How long a section takes, in nanoseconds, without its lock
    #[arg(long, value_name = "NS", default_value = "100", value_parser = args::counts(MOST_NS))]
    section: usize,
    /// How many threads enter sections [default: one for each usable core, at least two]
    #[arg(long, value_name = "N", value_parser = args::counts(MOST_THREADS))]
    threads: Option<usize>,
    /// Between two sections, a thread loops up to N times, at random
    #[arg(long, value_name = "N", default_value = "50")]
    between: u32,
    /// Seconds to measure for at most
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = args::seconds)]
    budget: Duration,
    #[command(flatten)]
    results: Results,
}

impl Sync {
    /// # Errors
    /// When the system refuses threads, or the output cannot be written.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let SyncCommand::Advise(advise) = &self.command;
        advise.run()
    }
}

impl Advise {
    fn run(&self) -> Result<ExitCode> {
        self.results.check()?;
        let measurement = &Measurement::begin(u32::MAX, interrupt::stop_flag()?);
        let increments = increments_of(self.section)?;
        let Self { between, budget, .. } = *self;
        let threads = self.threads.unwrap_or_else(|| Topology::discover().usable_cores().max(2));
        let stop = &*measurement.stop;
        let progress = Progress::new("measuring");
        let show_share = |share| progress.show(share);
        let sections = measure(increments, threads, between.into(), budget, stop, show_share);
        drop(progress);
        let sections = match sections {
            Err(error) => return interrupt::ending_with(error, stop),
            Ok(sections) => sections,
        };
        let switches = &Switches::default();
        let busy = measurement.busy(switches);
        let (mut page, mut advice) = (Page::default(), Page::default());
        show(&mut page, &sections.results);
        page.lines("\n");
        // At the end, where a terminal shows it, and at the top of a report.
        if let Err(error) = advise(&mut advice, &sections, busy.as_deref()) {
            return interrupt::ending_with(error, stop);
        }
        page.append(&advice);
        let entries = sections.results.entries();
        let plots = |document: &mut Document| {
            add_page(document, &advice);
            section_plots::plots(document, &entries);
        };
        let findings = Findings { objects: &entries, rows: None, page: &page, plots: &plots };
        if self.results.are_for_programs() {
            measurement.warn(switches);
        }
        measurement.present_with(switches, &self.results, &findings, || {
            measurement.print_below_heading(&page)
        })?;
        Ok(interrupt::ending(&measurement.stop))
    }
}
