//! `consort completions`: completes the command in a shell.
//!
//! The parser of an argument supplies the values, or else the argument's name determines them. Many
//! arguments also accept other values, such as an algorithm with its parameters.

use std::collections::BTreeSet;

use anyhow::Result;
use clap::{Args, Command, builder::PossibleValuesParser};
use clap_complete::Shell;
use consort::tune::Collective;
use consort_tuner::{Arrival, Rigour};

use consort_console::output;

const EXAMPLES: &str = "\
Examples:
  consort completions bash  ~/.local/share/bash-completion/completions/consort
  consort completions zsh   _consort in a folder of fpath
  consort completions fish  ~/.config/fish/completions/consort.fish

Write the script to that file with `>`. A new shell then completes commands,
options, and names of collectives and algorithms.";

/// Print the completion script for a shell
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Prints the script for `command`.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub(crate) fn run(self, command: &Command) -> Result<()> {
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set()).cloned();
        let mut shown = Command::new("consort").version("").subcommands(shown);
        shown = shown.mut_subcommands(with_names);
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut shown, "consort", &mut script);
        output::print_as_it_is(&String::from_utf8(script)?)
    }
}

/// Returns a command whose arguments know their possible names.
fn with_names(command: Command) -> Command {
    let named = command.mut_args(|argument| {
        let names = names_of(argument.get_id().as_str());
        let is_known = argument.get_value_parser().possible_values().is_some() || names.is_empty();
        if is_known { argument } else { argument.value_parser(PossibleValuesParser::new(names)) }
    });
    named.mut_subcommands(with_names)
}

/// Returns the possible values of an argument with this name, in any command.
fn names_of(id: &str) -> Vec<&'static str> {
    match id {
        "collective" => Collective::EVERY.map(Collective::name).to_vec(),
        "algorithm" => {
            let all = Collective::EVERY.into_iter().flat_map(consort_collectives::names).copied();
            all.collect::<BTreeSet<_>>().into_iter().collect()
        }
        "fabric" => vec!["threads", "processes", "mpi", "mixed"],
        "sync" => vec!["strict", "loose", "mine"],
        "arrival" => Arrival::EVERY.map(Arrival::name).to_vec(),
        "rigour" => Rigour::EVERY.map(Rigour::name).to_vec(),
        "waiting" => vec!["spin", "spin-yield", "spin-yield-park"],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use consort::{Waiting, launch::Fabric, sync_modes::SyncModes, tune::Candidate};

    use super::*;

    #[test]
    fn completed_names_are_accepted() {
        let each = |id: &str, takes: fn(&str) -> bool| {
            let names = names_of(id);
            assert!(!names.is_empty(), "{id}");
            assert!(names.iter().all(|name| takes(name)), "{id}: {names:?}");
        };
        each("collective", |name| name.parse::<Collective>().is_ok());
        each("algorithm", |name| name.parse::<Candidate>().is_ok());
        each("fabric", |name| name.parse::<Fabric>().is_ok());
        each("sync", |name| name.parse::<SyncModes>().is_ok());
        each("waiting", |name| name.parse::<Waiting>().is_ok());
    }
}
