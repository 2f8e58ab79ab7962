//! `consort bench lock`, `delegate` and `counter`: a counter shared by many threads; and
//! `consort bench container`: stacks and queues of many threads.

use std::process::ExitCode;

use anyhow::Result;
use consort_bench::{
    page::Page,
    workloads::critical_sections::{Race, Subject, show},
};
use consort_console::{args, interrupt, output::progress::Progress};
use consort_machine::topology::Topology;

use super::presenter::OutputOptions;

/// The default limit on the threads for each core.
const THREADS_A_CORE: usize = 8;
/// The largest number of threads that is measured.
const MOST_THREADS: usize = 1024;
/// The largest number of increments of an operation.
const MOST_INCREMENTS: usize = 1_000_000;

const COUNTER_EXAMPLES: &str = "\
Examples:
  consort bench lock --threads 2 --between 0    contended by two threads
  consort bench delegate --section 20           longer sections
  consort bench counter --threads 1,2           without and with contention";

/// Numbers of threads and iterations.
#[derive(clap::Args)]
pub(super) struct SectionOptions {
    /// Threads, as in 1,2,8 [default: powers of 2]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = args::counts(MOST_THREADS))]
    threads: Vec<usize>,
    /// Most loop iterations in between
    // Petrović 2015, section 6.2.2.
    #[arg(long, value_name = "N", default_value = "50", allow_negative_numbers = true)]
    between: u32,
    #[command(flatten)]
    output: OutputOptions,
}

/// The options of a counter in critical sections.
#[derive(clap::Args)]
#[command(after_help = COUNTER_EXAMPLES)]
pub(super) struct CounterBench {
    /// Increments per operation
    #[arg(long, value_name = "N", default_value = "1",
        value_parser = args::counts(MOST_INCREMENTS))]
    section: usize,
    #[command(flatten)]
    options: SectionOptions,
}

impl CounterBench {
    pub(super) fn run(&self, subject: Subject) -> Result<ExitCode> {
        self.options.run(subject, self.section)
    }
}

pub(super) const CONTAINERS: [Subject; 2] = [Subject::Stack, Subject::Queue];

const CONTAINER_EXAMPLES: &str = "\
Examples:
  consort bench container stack --threads 2 --between 0
  consort bench container queue --threads 2,8";

/// Time stacks and queues, next to crossbeam's
#[derive(clap::Args)]
#[command(after_help = CONTAINER_EXAMPLES)]
pub(super) struct ContainerBench {
    /// Under each lock and scheme, and lock-free
    #[arg(value_name = "KIND", value_parser = args::one_of(CONTAINERS, Subject::name))]
    kind: Subject,
    #[command(flatten)]
    options: SectionOptions,
}

impl ContainerBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        self.options.run(self.kind, 1)
    }
}

impl SectionOptions {
    /// Measures operations, each of this many increments, and prints.
    ///
    /// # Errors
    /// When nothing could be measured, or the output file cannot be written.
    pub(super) fn run(&self, subject: Subject, increments: usize) -> Result<ExitCode> {
        // Threads share cores, so no cores need to stay free.
        self.output.run(u32::MAX, |presenter| {
            let stop = &*presenter.measurement.stop;
            let threads = match &self.threads[..] {
                [] => &threads(Topology::discover().usable_cores()),
                threads => threads,
            };
            let between = self.between.into();
            let budget = presenter.budget;
            let race = Race { subject, threads, increments, between, budget, stop };
            let progress = Progress::new(subject.name());
            let results = race.run(|share| progress.show(share))?;
            drop(progress);
            interrupt::ensure_measured(!results.is_empty(), stop)?;
            let mut page = Page::default();
            show(&mut page, &results);
            presenter.show_entries(&results.entries(), &page)?;
            Ok("each row needs at least a block of 20 ms with each number of threads".to_owned())
        })
    }
}

/// Returns powers of two, the number of cores, and the most threads on them.
fn threads(cores: usize) -> Vec<usize> {
    let most = THREADS_A_CORE * cores;
    let powers = (0..usize::BITS).map(|power| 1 << power).take_while(|threads| *threads < most);
    let mut threads: Vec<usize> = powers.chain([cores, most]).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_go_up_to_eight_per_core() {
        assert_eq!(threads(1), [1, 2, 4, 8]);
        assert_eq!(threads(2), [1, 2, 4, 8, 16]);
        assert_eq!(threads(3), [1, 2, 3, 4, 8, 16, 24]);
    }
}
