//! `consort run`: starts a program as several processes.
//!
//! Options end where the program begins: everything after it belongs to the program. Some options
//! of other launchers, such as `-np`, are also accepted, so that their scripts run here.
//!
//! On this machine, the processes are children of this command. On other machines, an MPI starts
//! them: `machines` builds its command, and `hosts` reads the hosts. `ignored_settings` warns of
//! settings without effect.

mod hosts;
mod ignored_settings;
mod machines;

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    process::ExitCode,
    time::Duration,
};

use anyhow::Result;
use clap::{
    Args, CommandFactory as _, Parser,
    builder::{OsStringValueParser, TypedValueParser as _},
};
use consort_launch::{Binding, Launch};
use consort_machine::topology::Topology;

use consort_console::args::{self, MOST_PES};
use machines::{Job, Machines};

/// How long the other PEs continue when one has failed, unless another time is given.
const GRACE: Duration = Duration::from_secs(1);

const EXAMPLE: &str = "Example: consort run -n 4 ./program --its-option";

const EXAMPLES: &str = "\
Examples:
  consort run -n 4 ./program --its-option   4 processes here, PEs 0 to 3
  consort run -n 4 --tag-output ./program   each line with its PE's rank
  consort run -n 8 --timeout 60 ./program   ended after a minute: status 124
  consort run -n 4 --hosts a,b ./program    2 processes on each machine
  consort run -n 8 --pes-per-process 4 --hosts a,b ./program

The program is an OpenSHMEM program, compiled with `consort cc` or oshcc, or
one that calls Job::from_env of the Rust library. PE 0 reads standard input.
When a PE fails, the calls of the others fail too; PEs that have not ended a
second later are killed. The exit status is the one given to
shmem_global_exit; else that of the first PE that failed, or 128 plus the
number of the signal that killed it; 130 after Ctrl-C. Lines of output stay
whole, however long, unless a PE pauses for a second within one. Each process
finds its rank in CONSORT_RANK, and the number of PEs in CONSORT_SIZE. `-np`
is `-n`, as for other launchers.

With --hosts, the mpirun in PATH starts the processes and handles output,
signals and the exit status. -n counts PEs: a process of a Rust program may
have several. Variables CONSORT_*, SHMEM_* and SMA_* are passed on.";

/// Run a program as several processes, here or on several machines
#[derive(Args)]
#[command(version, display_name = "consort run")]
#[command(after_help = EXAMPLE, after_long_help = EXAMPLES)]
pub(crate) struct Run {
    /// The number of PEs; each is a process
    #[arg(short = 'n', long, alias = "np", value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_PES)))]
    pes: u32,
    /// Cores of the PEs: default, core or none
    ///
    /// Each PE is bound to its own core (core), moved there at the start (default), or left to the
    /// system (none).
    #[arg(long, value_name = "WHERE", default_value = "default", hide_default_value = true)]
    #[arg(value_parser = ["default", "core", "none"], hide_possible_values = true)]
    bind: String,
    /// Begin each line of output with its PE's rank
    #[arg(long)]
    tag_output: bool,
    /// End the job after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = args::seconds)]
    timeout: Option<Duration>,
    /// After a failure, kill the others [default: 1]
    ///
    /// When a PE has failed, the others may go on for this long.
    #[arg(long, value_name = "SECONDS", value_parser = args::seconds)]
    grace: Option<Duration>,
    /// Set an environment variable of the processes
    ///
    /// They inherit all others.
    #[arg(short = 'x', value_name = "NAME=VALUE")]
    #[arg(value_parser = OsStringValueParser::new().try_map(named))]
    variables: Vec<OsString>,
    #[command(flatten)]
    machines: Machines,
    /// The program, and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    program: Vec<OsString>,
}

/// [`Run`], as a command by itself.
#[derive(Parser)]
#[command(name = "consort run")]
struct RunCommand {
    #[command(flatten)]
    run: Run,
}

/// Returns the arguments of this command, with `-n` for `-np` among those of `run`.
pub(crate) fn arguments(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = all.collect();
    if all.get(1).is_none_or(|name| name != "run") {
        return all;
    }
    let command = RunCommand::command();
    let takes_next = |word: &str| {
        let has_name = |option: &clap::Arg| match word.strip_prefix("--") {
            Some(long) => {
                let aliases = option.get_all_aliases().unwrap_or_default();
                option.get_long() == Some(long) || aliases.contains(&long)
            }
            None => word
                .strip_prefix('-')
                .is_some_and(|short| option.get_short().is_some_and(|one| short.chars().eq([one]))),
        };
        let takes = |option: &clap::Arg| option.get_action().takes_values();
        command.get_opts().any(|option| has_name(option) && takes(option))
    };
    let mut at = 2;
    while let Some(word) = all.get_mut(at).filter(|word| word.as_encoded_bytes().starts_with(b"-"))
    {
        if word == "--" {
            break;
        }
        if word == "-np" {
            *word = "-n".into();
        }
        at += if takes_next(&word.to_string_lossy()) { 2 } else { 1 };
    }
    all
}

impl Run {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        if let Some(hosts) = self.machines.hosts()? {
            let job = Job {
                pes: self.pes,
                tags: self.tag_output,
                refused: self.refused(),
                variables: self.variables.iter().map(|text| with_value(text)).collect(),
                program: &self.program,
            };
            return self.machines.start(&hosts, job);
        }
        let mut words = self.program.into_iter();
        let program = words.next().unwrap_or_default();
        let binding = match self.bind.as_str() {
            "core" => Binding::Core,
            "none" => Binding::None,
            _ => Binding::Placed,
        };
        let processors = Topology::discover().processors();
        if binding == Binding::Core && self.pes as usize > processors {
            let pes = self.pes;
            tracing::warn!("--bind core does nothing: {pes} PEs share {processors} processors");
        }
        let variables: Vec<_> = self.variables.iter().filter_map(|text| set(text)).collect();
        ignored_settings::warn(self.pes, &variables);
        let launch = Launch {
            pes: self.pes,
            processors,
            binding,
            variables,
            tags: self.tag_output,
            timeout: self.timeout,
            grace: self.grace.unwrap_or(GRACE),
            program,
            arguments: words.collect(),
        };
        Ok(ExitCode::from(consort_launch::run(&launch)?))
    }

    /// Returns the first given option that only applies to processes of this machine.
    fn refused(&self) -> Option<&'static str> {
        let options = [
            (self.bind == "core", "--bind core"),
            (self.timeout.is_some(), "--timeout"),
            (self.grace.is_some(), "--grace"),
        ];
        options.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }
}

/// Returns the name and the value of `NAME=VALUE`, or only the name of a variable to pass on.
fn with_value(text: &OsStr) -> (OsString, Option<OsString>) {
    let mut parts = text.as_bytes().splitn(2, |&byte| byte == b'=');
    let mut part = || parts.next().map(|bytes| OsStr::from_bytes(bytes).to_owned());
    (part().unwrap_or_default(), part())
}

/// Checks `NAME=VALUE` or `NAME`.
fn named(text: OsString) -> Result<OsString, &'static str> {
    match with_value(&text) {
        (name, _) if name.is_empty() => Err("a variable needs a name: use NAME=VALUE"),
        _ => Ok(text),
    }
}

/// Returns the name and the value of `NAME=VALUE`; `None` for a name alone, whose variable the
/// processes inherit.
fn set(text: &OsStr) -> Option<(OsString, OsString)> {
    let (name, value) = with_value(text);
    Some((name, value?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn np_means_n_only_before_the_program() {
        for (given, taken) in [
            ("run -np 2 ./x", "run -n 2 ./x"),
            ("run --tag-output -np 2 ./x", "run --tag-output -n 2 ./x"),
            ("run --bind core -x A -np 2 ./x -np 3", "run --bind core -x A -n 2 ./x -np 3"),
            ("run --grace=1 -np 2", "run --grace=1 -n 2"),
            ("run --np 2 -np 3", "run --np 2 -n 3"),
            ("run --host a,b -np 2 ./x", "run --host a,b -n 2 ./x"),
            ("run ./x -np 2", "run ./x -np 2"),
            ("run -- -np", "run -- -np"),
            ("cc -np", "cc -np"),
            ("run", "run"),
        ] {
            let words = |text: &str| {
                let words = text.split(' ').map(OsString::from);
                std::iter::once("consort".into()).chain(words).collect::<Vec<OsString>>()
            };
            assert_eq!(arguments(words(given).into_iter()), words(taken));
        }
    }

    #[test]
    fn variables_have_values() {
        let read = |text: &str| set(OsStr::new(text));
        assert_eq!(read("A=b=c"), Some(("A".into(), "b=c".into())));
        assert_eq!(read("A="), Some(("A".into(), "".into())));
        assert_eq!(read("A"), None);
    }
}
