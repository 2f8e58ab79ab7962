//! The evidence for a claim in a report: the parameters that its figures depend on, and the figures
//! that are met and missed.

use consort_bench::units::counted;
use consort_report::{Cell, Document, Tone};
use consort_sim::machines::Machine;

use crate::{
    claims::{
        self, Claim,
        standing::{Standing, Verdict},
    },
    figures::{
        experiment::Outcome,
        quantity::{Quantity, simulated_machines},
    },
};

use super::text::standings;

/// Adds the mechanism of a claim, the origins of the parameters of its machines, and the figures
/// that are met and missed.
pub(super) fn add(document: &mut Document, claim: &Claim, outcome: &Outcome) {
    let mut facts = vec![("Mechanism", claim.mechanism.to_owned())];
    let names = simulated_machines(&outcome.quantities).into_iter();
    let machines: Vec<Machine> = names.filter_map(|name| Machine::find(name).ok()).collect();
    if machines.is_empty() {
        facts.push(("Parameters", "none: nothing is simulated".to_owned()));
    } else {
        let of_each = |text: fn(&Claim, &Machine) -> String| {
            let of = |machine: &Machine| format!("{}: {}", machine.name, text(claim, machine));
            machines.iter().map(of).collect::<Vec<_>>().join(". ")
        };
        facts.push(("Given", of_each(given)));
        facts.push(("Assumed", of_each(assumed)));
        facts.push(("Fitted to these figures", of_each(fitted)));
    }
    let [here, simulated] = standings(outcome);
    for (names, standing) in
        [(["Met, simulated", "Missed, simulated"], simulated), (["Met here", "Missed here"], here)]
    {
        add_standing(&mut facts, names, &standing);
    }
    document.facts(facts);
}

/// Adds what is met and missed. Figures to which a parameter was fitted are named as well, although
/// they do not count.
fn add_standing(
    facts: &mut Vec<(&'static str, String)>,
    [met, missed]: [&'static str; 2],
    standing: &Standing,
) {
    if standing.count() > 0 {
        facts.push((met, format!("{} of {}", standing.met.len(), standing.count())));
        let names = match &standing.missed[..] {
            [] => "none".to_owned(),
            names => names.join("; "),
        };
        facts.push((missed, names));
    }
    if !standing.fitted.is_empty() {
        facts.push(("Met, but fitted, so not counted", standing.fitted.join("; ")));
    }
}

fn given(_: &Claim, machine: &Machine) -> String {
    let counts = machine.provenance.counts;
    let all = counts.published + counts.assumed + counts.fitted;
    format!("{} of {all} parameters, by {}", counts.published, machine.source)
}

fn assumed(_: &Claim, machine: &Machine) -> String {
    let counts = machine.provenance.counts;
    let names = machine.provenance.assumed.join(", ");
    format!("{} ({names})", counted(counts.assumed as u64, "parameter"))
}

/// Returns the fitted parameters of a machine that decide figures of a claim, with these figures.
fn fitted(claim: &Claim, machine: &Machine) -> String {
    let is_its = |id: &&String| claim.figures().any(|figure| figure.id == **id);
    let name = |id: &String| claims::figure(id).map_or(id.clone(), |one| one.quantity.to_owned());
    let fits = machine.provenance.fitted.iter().filter_map(|(parameter, figures)| {
        let names: Vec<String> = figures.iter().filter(is_its).map(name).collect();
        (!names.is_empty()).then(|| format!("{parameter} to {}", names.join("; ")))
    });
    let fits: Vec<String> = fits.collect();
    if fits.is_empty() { "none".to_owned() } else { fits.join(", ") }
}

/// Returns whether a quantity is met, as a cell: simulated, or else on this machine.
pub(super) fn result(quantity: &Quantity) -> Cell {
    let simulated = Verdict::simulated(quantity).map(|verdict| (verdict, ""));
    let here = || Verdict::here(quantity).map(|verdict| (verdict, " here"));
    match simulated.or_else(here) {
        None => Cell::text("-"),
        Some((Verdict::Met, place)) => Cell::text(&format!("met{place}")).toned(Tone::Good),
        Some((Verdict::Fitted, _)) => Cell::text("fitted").toned(Tone::Neutral),
        Some((Verdict::Missed, place)) => Cell::text(&format!("missed{place}")).toned(Tone::Bad),
    }
}
