//! The suite on PEs that are processes, and the outcomes of jobs whose processes end early.
//!
//! Only this program takes part: it runs the tests, it is the launcher that a test starts, and it
//! is each of the processes, of launchers and of jobs without one.

use consort_sandbox as _;

mod early_ends;
mod forks;
mod launching;
mod meeting;
#[path = "../it/public.rs"]
mod public;
mod statics;

use std::{env, process::ExitCode};

use consort::Job;
use libtest_mimic::{Arguments, Trial};

use crate::public::{play, programs};
use consort_sandbox::seeds;

/// The suite by numbers of PEs, with numbers of cases.
const SUITE: [(u32, usize); 7] =
    [(1, 2_000), (2, 20_000), (3, 4_800), (4, 4_800), (5, 2_400), (8, 2_400), (17, 1_200)];

fn main() -> ExitCode {
    if let Some(arguments) = meeting::arguments() {
        return meeting::run(&arguments);
    }
    match launching::role() {
        launching::Role::Tests => {}
        launching::Role::Launcher(launch) => return launching::launch(&launch),
        launching::Role::Pe(program) => return run(&program),
    }
    let suite = SUITE.into_iter().map(|(pes, count)| {
        Trial::test(format!("suite::{pes}"), move || {
            // The processes run what this one has drawn, because they might begin on another day.
            let programs =
                programs(pes, consort_native::Job::capabilities_of(pes), count).len() as u64;
            let seeds = seeds::of_programs(programs);
            let arguments = [count as u64, seeds.start, seeds.end].map(|one| one.to_string());
            let [count, first, end] = arguments.each_ref();
            launching::start(pes, &["suite", count, first, end]).ended().is(0, "")
        })
    });
    let tests = suite.chain(statics::tests()).chain(forks::tests());
    let tests = tests.chain(early_ends::tests()).chain(meeting::tests()).collect();
    // Jobs of many processes would slow each other down.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// Runs the program of a PE.
fn run(program: &[String]) -> ExitCode {
    let program: Vec<&str> = program.iter().map(String::as_str).collect();
    match program[..] {
        ["suite", count, first, end] => {
            let [count, first, end] = [count, first, end].map(|one| one.parse().expect("a number"));
            let (pes, count) = (size(), usize::try_from(count).expect("a number of cases"));
            let programs = programs(pes, consort_native::Job::capabilities_of(pes), count);
            match play(Job::from_env(1), &programs, first..end) {
                Ok(played) => {
                    let drawn = (first..end).count();
                    assert!(played == [drawn], "{played:?}");
                    ExitCode::SUCCESS
                }
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::FAILURE
                }
            }
        }
        ["statics"] => statics::run(),
        ["forks"] => forks::run(),
        ref other => early_ends::run(other),
    }
}

/// Returns the number of processes, from the launcher.
fn size() -> u32 {
    env::var("CONSORT_SIZE").expect("a launcher").parse().expect("a number")
}
