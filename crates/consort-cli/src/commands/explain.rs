//! `consort explain`: shows which algorithm serves a call here, and how it was chosen.

use std::path::PathBuf;

use anyhow::{Context, Result};
use consort::{
    launch::{Fabric, MachineShape},
    tune::{Algorithms, Arrival, Candidate},
};
use consort_bench::{
    harness::entry_and_exit_barrier,
    wisdom::{advised, usable, warn_if_untrusted},
};
use consort_fabric::CallSpec;
use consort_tuner::{
    Catalog, ChosenBy, Entry, Measurements, Selection, Selector, Wisdom, ranked, same,
};
use serde::Serialize;

use crate::wisdom_file::{self, Record};
use consort_console::{
    args::{self, Call},
    output::{self, finish, table, time},
};

const EXAMPLES: &str = "\
Examples:
  consort explain barrier --pes 2
  consort explain reduce --bytes 8k --pes 8 --sync loose
  consort explain broadcast --bytes 1M --all     all candidates, by the model";

/// Show which algorithm serves a call, and how it was chosen
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    #[command(flatten)]
    call: Call,
    /// The size of the team [default: the usable cores]
    ///
    /// The default is at least two; for mixed:2x1 and the like, it is the PEs of two machines.
    #[arg(long, value_name = "N", value_parser = args::pes)]
    pes: Option<u32>,
    /// Show every candidate with the model's estimate
    #[arg(long)]
    all: bool,
    /// threads (default), processes, mpi or mixed
    ///
    /// The PEs: threads; processes as `consort run` starts them; or processes of an MPI, as in mpi,
    /// mpi:2:in-turn or mixed:2x1, as `consort tune` names them.
    #[arg(long, value_name = "FABRIC", default_value = "threads", hide_default_value = true)]
    fabric: Fabric,
    /// How PEs arrive at calls: together (default) or skewed
    #[arg(long, value_name = "ARRIVAL", default_value = "together")]
    #[arg(hide_default_value = true, hide_short_help = true)]
    arrival: Arrival,
    /// The wisdom to use [default: the user's]
    ///
    /// CONSORT_WISDOM changes the default.
    #[arg(long, value_name = "FILE")]
    wisdom: Option<PathBuf>,
    /// Write a JSON object to FILE, or print it
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        default_missing_value = "-", value_parser = args::writable())]
    json: Option<PathBuf>,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct ExplainOutput {
    #[serde(flatten)]
    record: Record,
    /// `exact`, `nearest` or `model`.
    origin: &'static str,
    /// The requested bytes and PEs; those of `record` are the entry's.
    asked_bytes: u64,
    asked_pes: u32,
    /// Other candidates that are the same algorithm in this call.
    same: Vec<String>,
    /// The team sizes for which such calls were measured.
    measured_pes: Vec<u32>,
    /// The entry and exit barrier of a Strict call.
    barrier: Option<String>,
    /// The path of the wisdom, if it can be used.
    wisdom: Option<PathBuf>,
    /// The candidates with the model's estimates, if `--all` is given.
    candidates: Option<Vec<Estimate>>,
}

#[derive(Debug, Serialize)]
struct Estimate {
    candidate: String,
    estimate_ns: f64,
    chosen: bool,
}

impl Explain {
    /// Prints the choice and its origin.
    ///
    /// # Errors
    /// When the named wisdom cannot be used, or the output cannot be written.
    pub(crate) fn run(&self) -> Result<()> {
        let pes = self.pes_or_usual();
        let fabric = self.fabric.in_world_of(pes as usize);
        if fabric != self.fabric {
            tracing::warn!(
                "{pes} PEs of --fabric {} are {fabric}, so this explains --fabric {fabric}",
                self.fabric
            );
        }
        let algorithms = Algorithms::of(fabric);
        let path = wisdom_file::path(self.wisdom.as_ref(), self.arrival, fabric)?;
        let identity = algorithms.identity().clone().with(self.arrival);
        let wisdom = match self.wisdom {
            Some(_) => {
                let wisdom = Wisdom::load(&path, &identity).map_err(advised)?;
                warn_if_untrusted(&path);
                Some(wisdom)
            }
            None => usable(&path, &identity),
        };
        let cores = algorithms.cores();
        let query = self.call.query(pes);
        let selector = Selector::new(algorithms, Measurements::new(wisdom.as_ref(), cores));
        let selected = selector.select(&CallSpec::from(&query));
        let selected = selected.context("no algorithm can serve this call")?;
        let barrier = entry_and_exit_barrier(algorithms, wisdom.as_ref(), &query);
        let estimates = self.all.then(|| estimates(algorithms, &selected));
        let place = match wisdom {
            Some(_) => WisdomOrigin::Wisdom(path),
            None => WisdomOrigin::NoWisdom(self.arrival, fabric),
        };
        let same = same_as(algorithms, &selected);
        self.print(&selected, &same, barrier.as_ref(), place, estimates)
    }

    /// Returns the requested number of PEs, or that of two machines, or one for each core.
    fn pes_or_usual(&self) -> u32 {
        let of_machines = match self.fabric {
            Fabric::Mixed(MachineShape { processes: Some(processes), process }) => {
                u32::try_from(processes.saturating_mul(process.pes_each).saturating_mul(2)).ok()
            }
            _ => None,
        };
        let cores = || Algorithms::of(self.fabric).cores();
        let usual = || u32::try_from(cores().max(2)).unwrap_or(u32::MAX);
        self.pes.or(of_machines).unwrap_or_else(usual)
    }

    fn print(
        &self,
        selected: &Selection<'_>,
        same: &[Candidate],
        barrier: Option<&Candidate>,
        place: WisdomOrigin,
        estimates: Option<Vec<Estimate>>,
    ) -> Result<()> {
        let Some(json) = &self.json else {
            return output::print(&text(selected, same, barrier, &place, estimates));
        };
        let wisdom = match place {
            WisdomOrigin::Wisdom(path) => Some(path),
            WisdomOrigin::NoWisdom(..) => None,
        };
        let entry = selected.entry.as_deref().context("no information about the choice")?;
        let explained = ExplainOutput {
            record: Record::from(entry),
            origin: match selected.by {
                ChosenBy::Wisdom if selected.is_exact() => "exact",
                ChosenBy::Wisdom => "nearest",
                ChosenBy::Force | ChosenBy::Model => "model",
            },
            asked_bytes: selected.query.bytes,
            asked_pes: selected.query.pes,
            same: same.iter().map(ToString::to_string).collect(),
            measured_pes: selected.measured_pes.clone(),
            barrier: barrier.map(ToString::to_string),
            wisdom,
            candidates: estimates,
        };
        output::write_json_lines(json, &[explained])
    }
}

/// The origin of a choice's wisdom.
enum WisdomOrigin {
    /// The wisdom at this path.
    Wisdom(PathBuf),
    /// No wisdom for this arrival and fabric.
    NoWisdom(Arrival, Fabric),
}

/// Returns the other candidates that are the chosen algorithm under another name.
fn same_as<C: Catalog>(algorithms: &C, selected: &Selection<'_>) -> Vec<Candidate> {
    let Selection { query, candidate: chosen, .. } = selected;
    let is_same = |other: &Candidate| *other != **chosen && same(algorithms, query, chosen, other);
    algorithms.candidates(query).into_iter().filter(is_same).collect()
}

/// Returns all candidates with their estimates, the most promising first.
fn estimates<C: Catalog>(algorithms: &C, selected: &Selection<'_>) -> Vec<Estimate> {
    let estimate = |(candidate, estimate_ns): (Candidate, f64)| Estimate {
        estimate_ns,
        chosen: candidate == *selected.candidate,
        candidate: candidate.to_string(),
    };
    ranked(algorithms, &selected.query, |_| true).into_iter().map(estimate).collect()
}

/// Returns what disturbed the measurement of an entry; nothing on an idle machine.
fn disturbances(entry: &Entry) -> Vec<String> {
    let disturbed = 100.0 * (1.0 - entry.undisturbed);
    let share = (disturbed > 10.0)
        .then(|| format!("others used the cores during {disturbed:.0} % of its blocks"));
    entry.busy.iter().cloned().chain(share).collect()
}

fn text(
    selected: &Selection<'_>,
    same: &[Candidate],
    barrier: Option<&Candidate>,
    place: &WisdomOrigin,
    estimates: Option<Vec<Estimate>>,
) -> String {
    let mut text = format!("{selected}\n");
    let disturbances = selected.entry.as_deref().map(disturbances).unwrap_or_default();
    if !disturbances.is_empty() {
        let disturbances = disturbances.join(", ");
        text += &output::wrapped(&format!("  measured on a busy machine: {disturbances}"));
        text += "  tune it again with --retune when the machine is idle\n";
    }
    if !same.is_empty() {
        let names: Vec<String> = same.iter().map(ToString::to_string).collect();
        text += &output::wrapped(&format!("  the same here: {}", names.join(", ")));
    }
    if let Some(barrier) = barrier {
        text += &format!("  within: barrier {barrier}\n");
    }
    text += &match place {
        WisdomOrigin::Wisdom(path) => format!("  wisdom: {}\n", path.display()),
        WisdomOrigin::NoWisdom(arrival, fabric) => {
            let mut tune = "consort tune".to_owned();
            if *arrival != Arrival::Together {
                tune += &format!(" --arrival {arrival}");
            }
            if *fabric != Fabric::Threads {
                tune += &format!(" --fabric {fabric}");
            }
            if fabric.shape().is_some() {
                tune += &format!(" --pes {}", selected.query.pes);
            }
            format!("  wisdom: none in use; `{tune}` makes it\n")
        }
    };
    if let Some(estimates) = estimates {
        let mut table = table(["candidate", "by the model"]);
        for Estimate { candidate, estimate_ns, chosen } in estimates {
            let mark = if chosen { " *" } else { "" };
            table.add_row([candidate + mark, time(estimate_ns)]);
        }
        text += &format!("\n{}", finish(table, &[1]));
        text += &output::wrapped(&format!("* marks the choice, {}", selected.candidate));
    }
    text
}
