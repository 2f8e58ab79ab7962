//! The command `consort` as a library. A program that registers algorithms can thus be a command
//! that tunes them.
//!
//! The `main` of such a program calls `consort::tune::register` for each algorithm, and then
//! [`main`] of this library; see the example `own_algorithm`.

#[cfg(test)]
use consort_sandbox as _;

mod c_library;
mod commands;
mod compiler;
mod figure_plots;
mod section_plots;
mod wisdom_file;

use std::{env, process::ExitCode};

use clap::{CommandFactory as _, Parser};
use consort_console::{command, session::Session};

use commands::{
    bench::Bench,
    cc::{self, Cc},
    completions::Completions,
    explain::Explain,
    install::Install,
    man::Man,
    mpi::Mpi,
    profile::Profile,
    run::Run,
    sync::Sync,
    topo::Topo,
    tune::Tune,
    wisdom::Wisdom,
};
use compiler::Language;

const EXAMPLES: &str = "\
Examples:
  consort tune                                   measure this machine, once
  consort explain reduce --bytes 8k --pes 2      show the algorithm of a call
  consort bench barrier                          next to other libraries
  consort sync advise --section 100 --threads 8  recommend a lock
  consort cc prog.c -o prog                      compile an OpenSHMEM program
  consort run -n 4 ./prog                        run it as four processes
  consort profile ./prog                         show where its time goes

Exit status: 0 success, 1 an error, 2 wrong usage, 3 a check that failed.
Ctrl-C ends a measurement: the command shows the results so far and exits with
130 (`tune` saves them and exits with 0). A second Ctrl-C ends it at once.";

/// Self-tuning collectives for threads and processes, and locks
#[derive(Parser)]
#[command(name = "consort", version, after_long_help = EXAMPLES, max_term_width = 100)]
// The usual template has an empty line after `about`; without it, the short help fits a screen.
#[command(help_template = "{about}\n{usage-heading} {usage}\n\n{all-args}{after-help}")]
struct Consort {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Topo(Topo),
    Tune(Tune),
    Explain(Explain),
    Wisdom(Wisdom),
    Bench(Bench),
    Run(Run),
    Profile(Profile),
    Mpi(Mpi),
    #[command(hide = true)]
    Session(Session),
    /// Compile and link an OpenSHMEM program in C
    #[command(after_help = cc::EXAMPLES)]
    Cc(Cc),
    /// Compile and link an OpenSHMEM program in C++
    #[command(name = "c++", after_help = cc::EXAMPLES_CXX)]
    Cxx(Cc),
    Install(Install),
    Sync(Sync),
    Completions(Completions),
    Man(Man),
}

/// Runs the command on the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    let done = |()| ExitCode::SUCCESS;
    let arguments = || commands::run::arguments(env::args_os());
    command::run(arguments, |Consort { command }| match command {
        Command::Topo(topo) => topo.run(),
        Command::Tune(tune) => tune.run(),
        Command::Explain(explain) => explain.run().map(done),
        Command::Wisdom(wisdom) => wisdom.run().map(done),
        Command::Bench(bench) => bench.run(),
        Command::Run(run) => run.run(),
        Command::Profile(profile) => profile.run(),
        Command::Mpi(mpi) => mpi.run().map(done),
        Command::Session(session) => session.run(),
        Command::Cc(cc) => cc.run(Language::C),
        Command::Cxx(cc) => cc.run(Language::Cxx),
        Command::Install(install) => install.run().map(done),
        Command::Sync(sync) => sync.run(),
        Command::Completions(completions) => completions.run(&Consort::command()).map(done),
        Command::Man(man) => man.run(&Consort::command()).map(done),
    })
}
