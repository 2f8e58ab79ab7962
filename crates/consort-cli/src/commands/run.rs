//! `consort run`: starts a program as several processes.
//!
//! Options end where the program begins: what follows is the program's. Some that other launchers
//! have are taken too, as `-np`, so that their scripts run here.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Result, bail};
use clap::{Args, CommandFactory as _, Parser};
use consort::{Algorithms, MOST_PES};
use consort_launch::{Binding, Launch};

use crate::args;

const EXAMPLES: &str = "\
Examples:
  consort run -n 4 ./program --its-option   4 processes here, PEs 0 to 3
  consort run -n 4 --tag-output ./program   each line with its PE's rank
  consort run -n 8 --timeout 60 ./program   ended after a minute: status 124

The program is an OpenSHMEM program, compiled with `consort cc` or oshcc, or
one that calls Pes::from_env of the Rust library. PE 0 reads standard input.
When a PE fails, the calls of the others do too; those that have not ended a
second later are killed. The exit status is the one given to
shmem_global_exit; else that of the first PE that failed, or 128 and the
number of the signal that killed it; 130 after Ctrl-C. Each process finds its
rank in CONSORT_RANK, and their number in CONSORT_SIZE. `-np` is `-n`, as for
other launchers.";

/// Run a program as several processes of this machine
#[derive(Args)]
#[command(version, display_name = "consort run", after_help = EXAMPLES)]
pub(crate) struct Run {
    /// The number of processes, each of which is a PE
    #[arg(short = 'n', long, alias = "np", value_name = "N")]
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
    /// Set an environment variable of the processes, which have those of this command anyway
    #[arg(short = 'x', value_name = "NAME=VALUE")]
    variables: Vec<OsString>,
    #[command(flatten)]
    elsewhere: Elsewhere,
    /// The program, and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    program: Vec<OsString>,
}

/// Options of other launchers, which need nothing here or cannot be had.
#[derive(Args)]
struct Elsewhere {
    #[arg(long, hide = true)]
    oversubscribe: bool,
    #[arg(long, hide = true)]
    allow_run_as_root: bool,
    #[arg(long, alias = "machinefile", hide = true)]
    hostfile: Option<OsString>,
    #[arg(short = 'H', long, hide = true)]
    host: Option<String>,
}

/// [`Run`], as a command by itself.
#[derive(Parser)]
#[command(name = "consort run")]
struct Alone {
    #[command(flatten)]
    run: Run,
}

impl Elsewhere {
    /// Fails if other machines are asked for.
    fn ensure_here(&self) -> Result<()> {
        let is_here = |host: &str| {
            let name = host.split(':').next().unwrap_or_default();
            ["localhost", "127.0.0.1"].contains(&name)
        };
        let is_elsewhere = self.host.as_ref().is_some_and(|all| !all.split(',').all(is_here));
        if self.hostfile.is_some() || is_elsewhere {
            let option = if is_elsewhere { "--host" } else { "--hostfile" };
            bail!("{option}: all PEs run on this machine, and on no other: leave the option out");
        }
        Ok(())
    }
}

/// The arguments of this command, with `-n` for `-np` among those of `run`.
pub(crate) fn arguments(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = all.collect();
    if all.get(1).is_none_or(|name| name != "run") {
        return all;
    }
    let command = Alone::command();
    let takes_next = |word: &str| {
        let has_name = |option: &clap::Arg| match word.strip_prefix("--") {
            Some(long) => option.get_long() == Some(long),
            None => word
                .strip_prefix('-')
                .is_some_and(|short| option.get_short().is_some_and(|one| short.chars().eq([one]))),
        };
        let takes = |option: &clap::Arg| option.get_action().takes_values();
        word == "--np" || command.get_opts().any(|option| has_name(option) && takes(option))
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
        self.elsewhere.ensure_here()?;
        let mut words = self.program.into_iter();
        let program = words.next().unwrap_or_default();
        let binding = match self.bind.as_str() {
            "core" => Binding::Core,
            "none" => Binding::None,
            _ => Binding::Placed,
        };
        let cores = Algorithms::here().cores();
        if binding == Binding::Core && self.pes > cores {
            tracing::warn!(
                "--bind core does nothing for {} PEs on {cores} usable cores: none has one of its \
                 own",
                self.pes
            );
        }
        let launch = Launch {
            pes: self.pes,
            cores,
            binding,
            variables: self.variables.iter().filter_map(|text| variable(text)).collect(),
            tags: self.tag_output,
            timeout: self.timeout,
            grace: self.grace,
            program,
            arguments: words.collect(),
        };
        Ok(ExitCode::from(consort_launch::run(&launch)?))
    }
}

/// The name and the value of `NAME=VALUE`; `None` for a name alone, whose variable the processes
/// have as it is.
fn variable(text: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=')?;
    let part = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    Some((part(&bytes[..at]), part(&bytes[at + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn np_is_n_before_the_program_alone() {
        for (given, taken) in [
            ("run -np 2 ./x", "run -n 2 ./x"),
            ("run --tag-output -np 2 ./x", "run --tag-output -n 2 ./x"),
            ("run --bind core -x A -np 2 ./x -np 3", "run --bind core -x A -n 2 ./x -np 3"),
            ("run --grace=1 -np 2", "run --grace=1 -n 2"),
            ("run --np 2 -np 3", "run --np 2 -n 3"),
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
        let read = |text: &str| variable(OsStr::new(text));
        assert_eq!(read("A=b=c"), Some(("A".into(), "b=c".into())));
        assert_eq!(read("A="), Some(("A".into(), "".into())));
        assert_eq!(read("A"), None);
    }
}
