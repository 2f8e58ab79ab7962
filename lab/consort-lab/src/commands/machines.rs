//! `consort-lab machines`: lists the machines that can be simulated, and shows their descriptions.

use super::machine_page::page;
use super::named;
use std::path::PathBuf;

use crate::simulation::machines::place;
use anyhow::Result;
use consort_sim::machines::Machine;
use serde::Serialize;

use consort_console::{
    args,
    output::{self, finish, table},
};

const EXAMPLES: &str = "\
Examples:
  consort-lab machines                   all built-in machines
  consort-lab machines scc               one, with its costs in nanoseconds
  consort-lab machines scc --source      its file, with sources
  consort-lab machines ./mine.toml       your own (docs/machines.md)
  consort-lab machines tile-gx36 --json  for programs";

/// Show the machines that can be simulated, or one of them
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Machines {
    /// A machine's name, or the path of a description that ends in .toml
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print the description itself
    #[arg(long, requires = "name", conflicts_with = "json")]
    source: bool,
    /// Write a JSON object for each machine to FILE, or print it
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        default_missing_value = "-", value_parser = args::writable())]
    json: Option<PathBuf>,
}

/// The output of `--json` for each machine if no machine is named.
#[derive(Serialize)]
struct Summary {
    name: String,
    title: String,
    pes: u32,
    kind: &'static str,
    source: String,
}

/// The output of `--json` for the named machine.
#[derive(Serialize)]
struct Whole {
    pes: u32,
    #[serde(flatten)]
    machine: Machine,
}

impl Machines {
    /// Prints the list, or the named machine.
    ///
    /// # Errors
    /// When the machine does not exist, its description has an error, or the output cannot be
    /// written.
    pub(crate) fn run(&self) -> Result<()> {
        let Some(name) = &self.name else {
            let machines: Result<Vec<Machine>, _> = Machine::shipped().map(Machine::find).collect();
            return self.list(&machines?.into_iter().map(Summary::from).collect::<Vec<_>>());
        };
        if self.source {
            let (_, text) = Machine::description(&place(name)?)?;
            return output::print_as_it_is(&text);
        }
        let machine = named::machine(name)?;
        let whole = Whole { pes: machine.pes(), machine };
        output::write_or_print(self.json.as_ref(), std::slice::from_ref(&whole), || {
            page(&whole.machine)
        })
    }

    fn list(&self, machines: &[Summary]) -> Result<()> {
        output::write_or_print(self.json.as_ref(), machines, || {
            let mut table = table(["name", "machine", "PEs", "kind", "source"]);
            for Summary { name, title, pes, kind, source } in machines {
                table.add_row([name.as_str(), title, &pes.to_string(), kind, source]);
            }
            finish(table, &[2])
        })
    }
}

impl From<Machine> for Summary {
    fn from(machine: Machine) -> Self {
        let (pes, kind) = (machine.pes(), machine.kind.name());
        Self { name: machine.name, title: machine.title, pes, kind, source: machine.source }
    }
}
