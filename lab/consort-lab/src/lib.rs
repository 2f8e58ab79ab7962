//! The command `consort-lab` as a library. With it, a program can simulate algorithms that it has
//! registered itself.
//!
//! 1. [`simulation`]: programs on described machines;
//! 2. [`calibration`] describes this machine, and [`prediction`] checks the description;
//! 3. [`figures`]: the experiments behind figures of papers; [`claims`]: the papers' claims;
//! 4. `commands`: the subcommands.

#[cfg(test)]
use consort_sandbox as _;

#[macro_use]
pub mod figures;

pub mod calibration;
pub mod claims;
mod commands;
pub mod prediction;
pub mod simulation;

use std::{env, process::ExitCode};

use clap::Parser;
use consort_console::{command, session::Session};

use commands::{
    calibrate::Calibrate, machines::Machines, model::Model, predict::Predict, reproduce::Reproduce,
    sim::Sim,
};

const EXAMPLES: &str = "\
Examples:
  consort-lab sim broadcast                  simulate on another machine
  consort-lab model broadcast --machine scc  what the model expects there
  consort-lab machines                       the built-in machines
  consort-lab reproduce                      the papers' claims, one line each
  consort-lab calibrate                      describe this machine
  consort-lab predict                        compare it with measurements

Exit status: 0 success, 1 an error, 2 wrong usage, 3 a check that failed.
Ctrl-C ends a measurement or simulation: the command shows the results so far
and exits with 130. A second Ctrl-C ends it at once.";

/// Simulate collectives and locks, predict times, and repeat papers' experiments
#[derive(Parser)]
#[command(name = "consort-lab", version, after_help = EXAMPLES, max_term_width = 100)]
struct Lab {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Sim(Sim),
    Machines(Machines),
    Model(Model),
    Calibrate(Calibrate),
    Predict(Predict),
    Reproduce(Reproduce),
    #[command(hide = true)]
    Session(Session),
}

/// Runs the command on the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    let done = |()| ExitCode::SUCCESS;
    command::run(
        || env::args_os().collect(),
        |Lab { command }| match command {
            Command::Sim(sim) => sim.run(),
            Command::Machines(machines) => machines.run().map(done),
            Command::Model(model) => model.run().map(done),
            Command::Calibrate(calibrate) => calibrate.run().map(done),
            Command::Predict(predict) => predict.run(),
            Command::Reproduce(reproduce) => reproduce.run(),
            Command::Session(session) => session.run(),
        },
    )
}
