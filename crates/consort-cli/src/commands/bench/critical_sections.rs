//! `consort bench lock`, `delegate` and `counter`: a counter shared by many threads; `consort bench
//! lock SITUATION`: locks in situations in which locks are known to fail; and `consort bench
//! container`: stacks and queues of many threads.

use std::{process::ExitCode, time::Instant};

use anyhow::{Error, Result, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use consort_bench::{
    page::Page,
    peers::native_locks::LoadedLocks,
    workloads::critical_sections::{
        Race, Subject, show,
        situations::{self, Situation},
    },
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

/// The largest number of busy processes.
const MOST_BUSY: usize = 1024;

const COUNTER_EXAMPLES: &str = "\
Examples:
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
struct CounterOptions {
    /// Increments per operation
    #[arg(long, value_name = "N", default_value = "1",
        value_parser = args::counts(MOST_INCREMENTS))]
    section: usize,
    #[command(flatten)]
    options: SectionOptions,
}

/// A counter in critical sections.
#[derive(clap::Args)]
#[command(after_help = COUNTER_EXAMPLES)]
pub(super) struct CounterBench {
    #[command(flatten)]
    counter: CounterOptions,
}

impl CounterBench {
    pub(super) fn run(&self, subject: Subject) -> Result<ExitCode> {
        self.counter.options.run(subject, self.counter.section)
    }
}

const LOCK_EXAMPLES: &str = "\
Examples:
  consort bench lock --threads 2 --between 0    a counter of two threads
  consort bench lock short hog --threads 8      the best lock in each situation";

/// Time locks, next to parking_lot, std and others
#[derive(clap::Args)]
#[command(after_help = LOCK_EXAMPLES)]
// The help fits a screen without them.
#[command(mut_args(|option| {
    let is_rare = ["csv", "compare", "fail_if_slower", "until_decided"].contains(&option.get_id().as_str());
    option.hide_short_help(is_rare)
}))]
#[command(mut_arg("threads", |option| {
    option.help("Threads [default: powers of 2; situations: 4 a core]")
}))]
pub(super) struct LockBench {
    /// Situations, or all [default: only a counter]
    #[arg(value_name = "SITUATION", value_parser = situation(),
        conflicts_with_all = ["section", "between"])]
    situations: Vec<Situations>,
    /// Run N busy processes meanwhile
    #[arg(long, value_name = "N", value_parser = args::counts(MOST_BUSY), requires = "situations")]
    busy: Option<usize>,
    /// Show all locks of each situation
    #[arg(long, requires = "situations")]
    verbose: bool,
    #[command(flatten)]
    counter: CounterOptions,
}

/// One situation, or all.
type Situations = Vec<Situation>;

/// The name of all situations.
const ALL: &str = "all";

/// Reads the name of a situation, or of all.
fn situation() -> impl TypedValueParser<Value = Situations> {
    let value = |it: Situation| PossibleValue::new(it.name()).help(it.about());
    let all = PossibleValue::new(ALL).help("each of them");
    PossibleValuesParser::new(Situation::EVERY.map(value).into_iter().chain([all])).map(|name| {
        Situation::EVERY.into_iter().filter(|it| name == ALL || name == it.name()).collect()
    })
}

impl LockBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let CounterOptions { section, options } = &self.counter;
        let situations = self.situations.concat();
        if situations.is_empty() {
            return options.run(Subject::Lock, *section);
        }
        for situation in &situations {
            let fewest = situation.fewest_threads();
            ensure!(
                options.threads.iter().all(|threads| *threads >= fewest),
                "{} needs at least {fewest} threads",
                situation.name()
            );
        }
        options.output.run(u32::MAX, |presenter| {
            let (stop, begun) = (&*presenter.measurement.stop, Instant::now());
            let load = |library: LoadedLocks| Some((library, library.load(stop).err()?));
            let absent: Vec<(LoadedLocks, Error)> =
                LoadedLocks::EVERY.into_iter().filter_map(load).collect();
            let progress = Progress::new(Subject::Lock.name());
            let race = situations::Race {
                situations: &situations,
                threads: &options.threads,
                busy: self.busy.unwrap_or(0),
                absent: &absent,
                budget: presenter.budget.saturating_sub(begun.elapsed()),
                stop,
            };
            let results = race.run(|share| progress.show(share))?;
            drop(progress);
            interrupt::ensure_measured(!results.is_empty(), stop)?;
            let mut page = Page::default();
            if self.verbose || results.is_single() {
                situations::show_all(&mut page, &results);
            }
            if !results.is_single() {
                situations::show_best(&mut page, &results);
            }
            presenter.show_entries(&results.entries(), &page)?;
            Ok("each lock needs at least two blocks of 20 ms in each situation".to_owned())
        })
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
