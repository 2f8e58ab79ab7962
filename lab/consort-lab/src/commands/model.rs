//! `consort-lab model`: estimates each algorithm for a call on a described machine.

use std::path::PathBuf;

use anyhow::{Context, Result};
use consort_console::{
    args::{self, Call},
    output::{self, finish, table, time, wrapped},
};
use consort_fabric::CallSpec;
use consort_tuner::{Measurements, Selector, ranked};
use serde::Serialize;

use super::named;
use crate::simulation::Described;

const EXAMPLES: &str = "\
Examples:
  consort-lab model broadcast --machine scc
  consort-lab model all_reduce --machine niagara2-x4 --pes 64 --bytes 8k
  consort-lab model barrier --machine cluster --pes 1024

`consort-lab sim` simulates the same call, with contention and late PEs.";

/// Estimate the time of each algorithm on a machine by the model
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Model {
    #[command(flatten)]
    call: Call,
    /// A machine's name, or the path of a description that ends in .toml
    #[arg(long, value_name = "NAME|FILE", default_value = "scc")]
    machine: String,
    /// The size of the team [default: all PEs of the machine]
    #[arg(long, value_name = "N", value_parser = args::pes)]
    pes: Option<u32>,
    /// Write a JSON object for each algorithm to FILE, or print it
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        default_missing_value = "-", value_parser = args::writable())]
    json: Option<PathBuf>,
}

/// One line of `--json`.
#[derive(Debug, Serialize)]
struct Estimate {
    machine: String,
    collective: &'static str,
    pes: u32,
    bytes: u64,
    algorithm: String,
    latency_ns: f64,
    chosen: bool,
}

impl Model {
    /// Prints the estimates, the best first.
    ///
    /// # Errors
    /// When the machine does not exist or has too few PEs, or the output cannot be written.
    pub(crate) fn run(&self) -> Result<()> {
        let machine = named::machine(&self.machine)?;
        let (name, pes) = (machine.name.clone(), self.pes.unwrap_or(machine.pes()));
        let catalog = Described::of(machine, pes)?;
        let query = self.call.query(pes);
        let selected = Selector::new(&catalog, Measurements::Nothing)
            .select(&CallSpec::from(&query))
            .with_context(|| format!("no algorithm can serve this call on {name}"))?;
        let all: Vec<Estimate> = ranked(&catalog, &selected.query, |_| true)
            .into_iter()
            .map(|(candidate, latency_ns)| Estimate {
                machine: name.clone(),
                collective: query.collective.name(),
                pes,
                bytes: selected.query.bytes,
                latency_ns,
                chosen: candidate == *selected.candidate,
                algorithm: candidate.to_string(),
            })
            .collect();
        output::write_or_print(self.json.as_ref(), &all, || {
            let mut table = table(["algorithm", "estimate", ""]);
            for one in &all {
                let mark = if one.chosen { "chosen" } else { "" };
                table.add_row([one.algorithm.clone(), time(one.latency_ns), mark.to_owned()]);
            }
            let heading = format!("{}, on {name}, by the model", selected.query);
            format!("{}\n{}", wrapped(&heading), finish(table, &[1]))
        })
    }
}
