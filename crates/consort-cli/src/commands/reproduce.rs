//! `consort reproduce`: a paper's figure or table, with the results of this machine.

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use consort::MOST_PES;
use consort_bench::{
    claims::{self, CLAIMS, Claim, Place},
    environment::Switches,
    figures::{experiment::Outcome, quantity::Quantity},
};
use consort_sim::machines::Machine;

use crate::{
    args, interrupt,
    measurement::Measurement,
    output::{self, progress::Progress},
};

/// The default budget of all claims together.
const QUICK: Duration = Duration::from_secs(7);
/// The default budget of one claim.
const THOROUGH: Duration = Duration::from_secs(15);

const EXAMPLES: &str = "\
Examples:
  consort reproduce                 all claims in brief, and how each stands here
  consort reproduce H6              one of them as a table
  consort reproduce P3 P4 P5        several, one after the other
  consort reproduce G5 --pes 4      among so many PEs
  consort reproduce P4 --json       for programs, one figure a line";

/// Run papers' experiments here and compare with the papers' figures; without a claim, all in
/// brief.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Reproduce {
    /// The claims; without one, the result for each here
    #[arg(value_parser = named(), ignore_case = true, value_name = "CLAIM")]
    claims: Vec<Named>,
    /// Number of PEs instead of those that suit a claim
    #[arg(long, value_name = "N")]
    pes: Option<u32>,
    /// Seconds to measure for, about [default: 15 a claim, or 7 for all in brief]
    #[arg(long, value_name = "SECONDS", value_parser = args::seconds)]
    budget: Option<Duration>,
    /// Write one JSON object per figure, to the file or else to standard output (`-`)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        default_missing_value = "-", value_parser = args::writable())]
    json: Option<PathBuf>,
}

/// A claim by its name.
#[derive(Clone, Copy)]
struct Named(&'static Claim);

impl std::fmt::Debug for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.id)
    }
}

/// Parses the name of a claim, in upper or lower case.
fn named() -> impl TypedValueParser<Value = Named> {
    let values = CLAIMS.iter().map(|claim| PossibleValue::new(claim.id).help(claim.about));
    PossibleValuesParser::new(values)
        .try_map(|id| claims::find(&id).map(Named).ok_or("there is no such claim"))
}

impl Reproduce {
    /// Measures and prints.
    ///
    /// # Errors
    /// When options are out of range, a job fails, or the output file cannot be written.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let claims = || self.claims.iter().map(|named| named.0);
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
            self.pes.is_none() || !self.claims.is_empty(),
            "--pes is for one claim or some: name it, as in `consort reproduce H6 --pes 8`"
        );
        let pes = self.pes.unwrap_or(u32::MAX);
        let simulated = !self.claims.is_empty() && claims().all(is_simulated);
        let measurement =
            &Measurement::begin(pes, interrupt::stop_flag()?).of_simulations_alone(simulated);
        let mut run = Run { measurement, simulating: Duration::ZERO, has_shown: false };
        let budget = if self.claims.is_empty() {
            self.all_in_brief(&mut run)
        } else {
            self.each_in_full(&mut run)
        };
        let budget = match budget {
            Err(error) => return interrupt::ending_with(error, &measurement.stop),
            Ok(budget) => budget,
        };
        let simulating = ("simulating the papers' machines".to_owned(), run.simulating);
        let measuring = measurement.elapsed().saturating_sub(run.simulating);
        let why = output::overrun::parts([simulating, ("measuring".to_owned(), measuring)]);
        output::overrun::tell(measurement.elapsed(), budget, &why);
        if !run.has_shown && interrupt::is_set(&measurement.stop) {
            return interrupt::ending_with(anyhow!("it was interrupted before"), &measurement.stop);
        }
        Ok(interrupt::ending(&measurement.stop))
    }

    /// Runs a claim's experiment with a budget. Nothing if it is interrupted.
    fn outcome(
        &self,
        claim: &Claim,
        budget: Duration,
        run: &mut Run<'_>,
    ) -> Result<Option<Outcome>> {
        let progress = Progress::new(claim.id);
        let whole = !self.claims.is_empty() || self.json.is_some();
        let begun = Instant::now();
        let show = |share| progress.show(share);
        let evaluated = claim.evaluate(self.pes, budget, whole, &run.measurement.stop, &show)?;
        Ok(evaluated.map(|(outcome, simulating)| {
            run.has_shown = true;
            run.simulating += if is_simulated(claim) { begun.elapsed() } else { simulating };
            outcome
        }))
    }

    /// Returns the budget.
    fn each_in_full(&self, run: &mut Run<'_>) -> Result<Duration> {
        let whole = self.budget.unwrap_or(THOROUGH * u32::try_from(self.claims.len())?);
        let budget = whole / u32::try_from(self.claims.len())?;
        let mut quantities = Vec::new();
        for (index, &Named(claim)) in self.claims.iter().enumerate() {
            let Some(outcome) = self.outcome(claim, budget, run)? else { break };
            if self.json.is_none() {
                let above = if index > 0 { String::new() } else { run.measurement.heading() };
                output::print(&format!("{above}\n{}", in_full(claim, &outcome)))?;
            }
            quantities.extend(outcome.quantities);
        }
        let none = Switches::default();
        match &self.json {
            Some(_) => {
                run.measurement.tell(&none, self.json.as_ref(), &quantities, String::new)?;
            }
            None => run.measurement.warn(&none),
        }
        Ok(whole)
    }

    /// Returns the budget.
    fn all_in_brief(&self, run: &mut Run<'_>) -> Result<Duration> {
        let whole = self.budget.unwrap_or(QUICK);
        let budget = whole / u32::try_from(CLAIMS.len())?;
        let (mut text, mut quantities) = (String::new(), Vec::new());
        for claim in CLAIMS {
            let Some(outcome) = self.outcome(claim, budget, run)? else { break };
            text += &format!("{}  {}\n", claim.id, claim.says);
            let place = if is_simulated(claim) { "simulated" } else { "here" };
            text += &output::wrapped(&format!("    {place}: {}", outcome.verdict));
            quantities.extend(outcome.quantities);
        }
        text += "\n`consort reproduce H6` shows one of them as figure or table.\n";
        let none = Switches::default();
        run.measurement.tell(&none, self.json.as_ref(), &quantities, || text)?;
        Ok(whole)
    }
}

/// The course of a run.
struct Run<'r> {
    measurement: &'r Measurement,
    /// The time that simulating took.
    simulating: Duration,
    /// Whether a claim has a result.
    has_shown: bool,
}

fn is_simulated(claim: &Claim) -> bool {
    matches!(claim.place, Place::Simulated)
}

/// A claim's figure or table, and its verdict.
fn in_full(claim: &Claim, outcome: &Outcome) -> String {
    let text = format!("{}: {}\n\n{}\n", claim.id, claim.says, output::page(&outcome.page));
    // A claim about the SCC alone has a table of its own, with all simulated values.
    if is_simulated(claim) {
        return text + &output::wrapped(&format!("Simulated: {}", outcome.verdict));
    }
    let text = text + &output::wrapped(&format!("Here: {}", outcome.verdict));
    match claim.place {
        Place::BesideSimulated(_) => format!("{text}\n{}", simulated(&outcome.quantities)),
        _ => text,
    }
}

/// A table of all simulated quantities and the paper's values, and where the numbers of these
/// machines are from.
fn simulated(quantities: &[Quantity]) -> String {
    let header = ["simulated machine", "quantity", "unit", "paper", "simulated", "error"];
    let mut table = output::table(header.map(str::to_owned).to_vec());
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    let mut machines = Vec::new();
    for quantity in quantities {
        let Some(value) = quantity.simulated.or(quantity.fitted) else { continue };
        let fitted = if quantity.fitted.is_some() { " fitted" } else { "" };
        if !machines.contains(&quantity.machine) {
            machines.push(quantity.machine);
        }
        table.add_row(vec![
            quantity.machine.to_owned(),
            quantity.quantity.clone(),
            quantity.unit.to_owned(),
            number(quantity.paper),
            format!("{value:.1}{fitted}"),
            quantity.rel_error.map_or("-".to_owned(), |error| format!("{:+.0} %", error * 100.0)),
        ]);
    }
    let mut text = output::finish(table, &[3, 4, 5]);
    for machine in machines.into_iter().filter_map(|name| Machine::find(name).ok()) {
        let told = format!("{}: {}", machine.name, machine.provenance.in_words());
        text += &format!("\n{}", output::wrapped(&told));
    }
    text
}
