//! `consort run`: starts a program as several processes.

use std::{ffi::OsString, process::ExitCode, time::Duration};

use anyhow::Result;
use clap::Args;
use consort::{Algorithms, MOST_PES};
use consort_launch::{Binding, Launch};

use crate::args;

const EXAMPLES: &str = "\
Examples:
  consort run -n 4 ./program --its-option   4 processes on this machine, PEs 0 to 3
  consort run -n 4 --tag-output ./program   each line with the rank of the PE that wrote it
  consort run -n 8 --timeout 60 ./program   ended after a minute, with status 124

The program is one that calls Pes::from_env of the Rust library. PE 0 reads standard input. When a
PE fails, the calls of the others do too; those that have not ended a second later are killed. The
exit status is that of the first PE that failed, or 128 and the number of the signal that killed it.
Each process finds its rank in CONSORT_RANK, and their number in CONSORT_SIZE.";

/// Run a program as several processes of this machine
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// The number of processes, each of which is a PE
    #[arg(short = 'n', long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_PES)))]
    pes: u32,
    /// Where they run: each on a core of its own (core), moved there at first (default), or
    /// wherever the system puts them (none)
    #[arg(long, value_name = "WHERE", default_value = "default")]
    #[arg(value_parser = ["default", "core", "none"])]
    bind: String,
    /// Begin each line of output with the rank of the PE that wrote it
    #[arg(long)]
    tag_output: bool,
    /// End the job if it takes longer than so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = args::seconds)]
    timeout: Option<Duration>,
    /// Let the other PEs go on for so many seconds when one has failed
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = args::seconds)]
    grace: Duration,
    /// The program
    program: OsString,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Run {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let binding = match self.bind.as_str() {
            "core" => Binding::Core,
            "none" => Binding::None,
            _ => Binding::Placed,
        };
        let launch = Launch {
            pes: self.pes,
            cores: Algorithms::here().cores(),
            binding,
            tags: self.tag_output,
            timeout: self.timeout,
            grace: self.grace,
            program: self.program,
            arguments: self.arguments,
        };
        Ok(ExitCode::from(consort_launch::run(&launch)?))
    }
}
