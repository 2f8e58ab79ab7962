//! `consort bench fork-join`: programs of parallel regions, with Consort and with other libraries.

use std::process::ExitCode;

use anyhow::Result;
use clap::builder::TypedValueParser;
use consort_bench::{
    harness::Figure,
    page::Page,
    peers::fork_join::{RUNTIMES, Runtime},
    workloads::fork_join::{
        Condition, ForkJoinProgram, NativeLibraries, Race, Results, show, take_part,
    },
};
use consort_console::{args, interrupt, output, output::progress::Progress};

use super::presenter::{OutputOptions, usual_pes};

const EXAMPLES: &str = "\
Examples:
  consort bench fork-join empty --peers consort,rayon
  consort bench fork-join nbody --peers consort --under busy-1,threads-2x";

/// Time programs of parallel regions, next to other libraries
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
// The help fits a screen without it.
#[command(mut_arg("until_decided", |option| option.hide(true)))]
pub(super) struct ForkJoinBench {
    /// Programs [default: all but decode-large]
    #[arg(value_name = "PROGRAM",
        value_parser = args::one_of(ForkJoinProgram::EVERY, ForkJoinProgram::name))]
    programs: Vec<ForkJoinProgram>,
    /// Threads [default: one for each usable core]
    #[arg(long, value_name = "N", value_parser = args::pes)]
    threads: Option<u32>,
    /// Libraries, as in consort,rayon [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', hide_possible_values = true,
        value_parser = args::one_of(RUNTIMES, |runtime| runtime.name))]
    peers: Vec<&'static Runtime>,
    /// Conditions, or all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "quiet",
        value_parser = condition(), hide_possible_values = true)]
    under: Vec<Conditions>,
    /// Perform one launch of a measurement
    #[arg(long, value_name = "JSON", hide = true)]
    launch: Option<String>,
    #[command(flatten)]
    output: OutputOptions,
}

/// One condition, or all.
type Conditions = Vec<Condition>;

/// The name of all conditions.
const ALL: &str = "all";

/// Reads the name of a condition, or of all.
fn condition() -> impl TypedValueParser<Value = Conditions> {
    // `None` stands for all.
    let choices = Condition::EVERY.map(Some).into_iter().chain([None]);
    args::one_of(choices, |choice| choice.map_or(ALL, Condition::name)).map(|choice| match choice {
        Some(condition) => vec![condition],
        None => Condition::EVERY.to_vec(),
    })
}

impl ForkJoinBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        if let Some(launch) = &self.launch {
            output::print_as_it_is(&(take_part(launch)? + "\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let threads = self.threads.unwrap_or_else(usual_pes);
        let programs = match &self.programs[..] {
            [] => &usual_programs(),
            programs => programs,
        };
        let runtimes = match &self.peers[..] {
            [] => &RUNTIMES.iter().collect::<Vec<_>>(),
            runtimes => runtimes,
        };
        self.output.run(threads, |presenter| {
            let stop = &*presenter.measurement.stop;
            let progress = Progress::new("fork-join");
            let native = &NativeLibraries::compile(runtimes, stop);
            let of_program = |&program: &ForkJoinProgram| {
                let conditions = self.under.iter().flatten();
                conditions.map(move |&condition| (program, condition))
            };
            let cells: Vec<_> = programs.iter().flat_map(of_program).collect();
            let budget = presenter.budget / u32::try_from(cells.len()).unwrap_or(u32::MAX);
            let of = |(index, &(program, condition)): (usize, &(ForkJoinProgram, Condition))| {
                progress.show(index as f64 / cells.len() as f64);
                Race { program, condition, runtimes, native, threads, budget, stop }.run()
            };
            let all = cells.iter().enumerate().take_while(|_| !interrupt::is_set(stop));
            let all: Vec<Results> = all.map(of).collect();
            drop(progress);
            let is_measured = all.iter().any(|results| !results.is_empty());
            interrupt::ensure_measured(is_measured || !interrupt::is_set(stop), stop)?;
            let figures: Vec<Figure> = all.iter().flat_map(Results::figures).collect();
            let mut page = Page::default();
            show(&mut page, &all);
            presenter.show(&figures, &page)?;
            Ok("each program needs a launch with each library".to_owned())
        })
    }
}

fn usual_programs() -> Vec<ForkJoinProgram> {
    let every = ForkJoinProgram::EVERY.into_iter();
    every.filter(|program| *program != ForkJoinProgram::DecodeLarge).collect()
}
