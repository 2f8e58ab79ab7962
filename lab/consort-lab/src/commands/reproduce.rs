//! `consort-lab reproduce`: prints a paper's figure or table, with the results of this machine.

mod evidence;
mod plots;
mod text;

use consort_console::{
    args::{self, MOST_PES},
    interrupt,
    measurement::Measurement,
    output::{self, progress::Progress},
    report::Findings,
    require,
    results::Results,
    usage,
};
use std::{
    collections::BTreeSet,
    process::ExitCode,
    time::{Duration, Instant},
};

use crate::{
    claims::{self, CLAIMS, Claim},
    figures::{experiment::Outcome, quantity::Quantity},
};
use anyhow::{Result, anyhow, bail, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use consort_bench::{
    environment::Switches,
    page::Page,
    units::{counted, in_a_line},
};
use consort_report::Document;
use consort_sim::machines::Machine;

use text::{in_brief, in_full, is_simulated};

/// The default budget for all claims together.
const QUICK: Duration = Duration::from_secs(7);
/// The default budget for one claim.
const THOROUGH: Duration = Duration::from_secs(15);

/// The largest number of letters of an error in a verdict. The whole error is printed as well.
const MOST_LETTERS: usize = 200;

const EXAMPLES: &str = "\
Examples:
  consort-lab reproduce                             a line for each claim
  consort-lab reproduce H6                          one of them as a table
  consort-lab reproduce P3 P4 P5                    several, one after the other
  consort-lab reproduce G5 --pes 4                  with 4 PEs
  consort-lab reproduce H5 --here                   only measurements here
  consort-lab reproduce P4 --json                   one figure per line
  consort-lab reproduce T7 --set scc.serve_ns=13    what a parameter decides
  consort-lab reproduce --all --report claims.html  all in full, for a browser";

/// Repeat the experiments of papers, and compare with their figures
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Reproduce {
    /// The claims to show; without one, a brief result for each claim
    #[arg(value_parser = named(), ignore_case = true, value_name = "CLAIM")]
    claims: Vec<Named>,
    /// Show all claims in full, which takes many minutes
    #[arg(long, conflicts_with = "claims")]
    all: bool,
    /// Only measure on this machine: do not simulate the papers' machines
    #[arg(long)]
    here: bool,
    /// Simulate a paper's machine with another value of a parameter; may be repeated
    #[arg(long = "set", value_name = "MACHINE.PARAMETER=VALUE", value_parser = change,
        conflicts_with = "here")]
    changes: Vec<Change>,
    /// Number of PEs, in place of the number that suits a claim
    #[arg(long, value_name = "N")]
    pes: Option<u32>,
    /// Approximate time to measure, in seconds [default: 15 per claim, or 7 for all in brief]
    #[arg(long, value_name = "SECONDS", value_parser = args::seconds)]
    budget: Option<Duration>,
    #[command(flatten)]
    results: Results,
}

/// A claim by its name.
#[derive(Clone, Copy)]
struct Named(&'static Claim);

impl std::fmt::Debug for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.id)
    }
}

/// A parameter of a machine with another value, in TOML.
#[derive(Clone, Debug)]
struct Change {
    machine: String,
    parameter: String,
    value: String,
}

/// Parses a change, as in `scc.serve_ns=12`.
fn change(text: &str) -> Result<Change, &'static str> {
    let split = text.split_once('=').and_then(|(names, value)| {
        let (machine, parameter) = names.split_once('.')?;
        let [machine, parameter, value] = [machine, parameter, value].map(str::to_owned);
        Some(Change { machine, parameter, value })
    });
    split.ok_or("expected a machine, a parameter and a value, as in scc.serve_ns=12")
}

/// Makes simulations use these values.
fn apply(changes: &[Change]) -> Result<()> {
    let machines: BTreeSet<&str> = changes.iter().map(|change| &*change.machine).collect();
    for machine in machines {
        let its = changes.iter().filter(|change| change.machine == machine);
        let its: Vec<_> = its.map(|change| (&*change.parameter, &*change.value)).collect();
        let changed = Machine::changed(machine, &its);
        let changed =
            changed.map_err(|error| usage::invalid_argument(format!("--set: {error}")))?;
        ensure!(changed.replace_shipped(), "--set: {machine} is not a built-in machine");
    }
    Ok(())
}

/// Parses the name of a claim, in upper or lower case.
fn named() -> impl TypedValueParser<Value = Named> {
    let values = CLAIMS.iter().map(|claim| PossibleValue::new(claim.id).help(claim.about));
    PossibleValuesParser::new(values)
        .try_map(|id| claims::find(&id).map(Named).ok_or("unknown claim"))
}

impl Reproduce {
    /// Measures and prints.
    ///
    /// # Errors
    /// When options are out of range, a job fails, or the output file cannot be written.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        self.results.check()?;
        apply(&self.changes)?;
        let claims = self.claims();
        let claims = || claims.iter().copied();
        let least = claims().map(|claim| claim.least_pes).max().unwrap_or(2);
        require!(
            self.pes.is_none_or(|pes| (least..=MOST_PES).contains(&pes)),
            "--pes: this experiment takes {least} to {MOST_PES} PEs"
        );
        require!(
            self.pes.is_none() || !claims().any(is_simulated),
            "--pes: the claims on the SCC are about its 48 cores"
        );
        require!(
            self.pes.is_none() || (!self.claims.is_empty() && !self.all),
            "--pes needs named claims, as in `consort-lab reproduce H6 --pes 8`"
        );
        let pes = self.pes.unwrap_or(u32::MAX);
        let simulated = claims().next().is_some() && claims().all(is_simulated);
        let measurement =
            &Measurement::begin(pes, interrupt::stop_flag()?).of_simulations_alone(simulated);
        let (simulating, evaluated) = (Duration::ZERO, Vec::new());
        let mut run = Run { measurement, simulating, evaluated, failed_count: 0 };
        let budget = match claims().count() {
            0 => self.all_in_brief(&mut run),
            count => self.each_in_full(claims(), count, &mut run),
        };
        let budget = match budget {
            Err(error) => return interrupt::ending_with(error, &measurement.stop),
            Ok(budget) => budget,
        };
        let simulating = ("simulating the papers' machines".to_owned(), run.simulating);
        let measuring = measurement.elapsed().saturating_sub(run.simulating);
        let why = output::overrun::parts([simulating, ("measuring".to_owned(), measuring)]);
        output::overrun::warn_if_over(measurement.elapsed(), budget, &why);
        if run.evaluated.is_empty() && interrupt::is_set(&measurement.stop) {
            return interrupt::ending_with(anyhow!("it was interrupted before"), &measurement.stop);
        }
        match run.failed_count {
            0 => Ok(interrupt::ending(&measurement.stop)),
            count => bail!("{} failed", counted(count as u64, "experiment")),
        }
    }

    /// Returns the claims to show in full.
    fn claims(&self) -> Vec<&'static Claim> {
        match self.all {
            true => CLAIMS.iter().collect(),
            false => self.claims.iter().map(|named| named.0).collect(),
        }
    }

    /// Runs a claim's experiment with a budget. Returns nothing if it is interrupted.
    fn outcome(
        &self,
        claim: &Claim,
        budget: Duration,
        run: &mut Run<'_>,
    ) -> Result<Option<Outcome>> {
        let progress = Progress::new(claim.id);
        let is_brief = self.claims.is_empty() && !self.all;
        let whole = !is_brief || self.results.are_for_programs() || self.results.report.is_some();
        let begun = Instant::now();
        let show = |share| progress.show(share);
        let (simulates, stop) = (whole && !self.here, &run.measurement.stop);
        let evaluated = claim.evaluate(self.pes, budget, whole, simulates, stop, &show)?;
        Ok(evaluated.map(|(outcome, simulating)| {
            run.simulating += if is_simulated(claim) { begun.elapsed() } else { simulating };
            let with = self.changes.iter().map(|it| {
                let Change { machine, parameter, value } = it;
                format!("; with {machine}.{parameter} = {value}")
            });
            Outcome { verdict: outcome.verdict + &with.collect::<String>(), ..outcome }
        }))
    }

    /// Shows each claim in full, and returns the budget. If there are several claims and one fails,
    /// the others are still shown.
    fn each_in_full(
        &self,
        claims: impl Iterator<Item = &'static Claim>,
        count: usize,
        run: &mut Run<'_>,
    ) -> Result<Duration> {
        let count_u32 = u32::try_from(count)?;
        let whole = self.budget.unwrap_or(THOROUGH * count_u32);
        let is_for_people = !self.results.are_for_programs();
        for (index, claim) in claims.enumerate() {
            let outcome = match self.outcome(claim, whole / count_u32, run) {
                Err(error) if count > 1 => {
                    run.failed_count += 1;
                    let why = in_a_line(&error);
                    output::print_error_line(&format!("error: {}: {why}", claim.id));
                    let short: String = why.chars().take(MOST_LETTERS).collect();
                    let cut = if short.len() < why.len() { " ..." } else { "" };
                    Outcome::unmeasured(&format!("it failed: {short}{cut}"))
                }
                other => match other? {
                    None => break,
                    Some(outcome) => outcome,
                },
            };
            if is_for_people {
                let above = if index > 0 { String::new() } else { run.measurement.heading() };
                output::print(&format!("{above}\n{}", output::page(&in_full(claim, &outcome))))?;
            }
            run.evaluated.push((claim, outcome));
        }
        run.measurement.warn(&Switches::default());
        self.show_outcome(run, || match is_for_people {
            true => Ok(()),
            false => {
                let all = run.evaluated.iter();
                let pages = all.map(|(claim, outcome)| output::page(&in_full(claim, outcome)));
                output::print(&pages.collect::<String>())
            }
        })?;
        Ok(whole)
    }

    /// Shows all claims in brief, and returns the budget.
    fn all_in_brief(&self, run: &mut Run<'_>) -> Result<Duration> {
        let whole = self.budget.unwrap_or(QUICK);
        let budget = whole / u32::try_from(CLAIMS.len())?;
        for claim in CLAIMS {
            let Some(outcome) = self.outcome(claim, budget, run)? else { break };
            run.evaluated.push((claim, outcome));
        }
        let page = in_brief(&run.evaluated);
        let none = Switches::default();
        if self.results.are_for_programs() {
            run.measurement.warn(&none);
        }
        self.show_outcome(run, || run.measurement.print(&none, &page))?;
        Ok(whole)
    }

    fn show_outcome(&self, run: &Run<'_>, text: impl FnOnce() -> Result<()>) -> Result<()> {
        let quantities = run.evaluated.iter().flat_map(|(_, outcome)| outcome.quantities.clone());
        let findings = Findings {
            objects: &quantities.collect::<Vec<Quantity>>(),
            rows: None,
            page: &Page::default(),
            plots: &|document: &mut Document| plots::plots(document, &run.evaluated),
        };
        run.measurement.present_with(&Switches::default(), &self.results, &findings, text)
    }
}

/// The state of a run.
struct Run<'r> {
    measurement: &'r Measurement,
    /// The time that simulating took.
    simulating: Duration,
    /// The claims that have a result.
    evaluated: Vec<(&'static Claim, Outcome)>,
    /// The number of claims whose experiment failed.
    failed_count: usize,
}
