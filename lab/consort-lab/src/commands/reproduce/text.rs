//! A claim as text: its figure or table, its verdict, and the simulated machines.

use crate::{
    claims::{
        Claim, Place,
        standing::{NEAR, Standing},
    },
    figures::{experiment::Outcome, quantity},
};
use consort::tune::Algorithms;
use consort_bench::{page::Page, units::counted};

/// Returns whether a claim is only simulated.
pub(super) fn is_simulated(claim: &Claim) -> bool {
    matches!(claim.place, Place::Simulated(_))
}

/// Returns where the verdict comes from.
pub(super) fn place(claim: &Claim) -> &'static str {
    if is_simulated(claim) { "simulated" } else { "here" }
}

/// Returns all claims, one line each.
pub(super) fn in_brief(evaluated: &[(&'static Claim, Outcome)]) -> Page {
    let mut page = Page::default();
    let line = |cells: [&str; 4]| {
        let [id, here, simulated, says] = cells;
        format!("{id:<4} {here:<12} {simulated:<12} {says}\n")
    };
    page.lines(line(["", "here", "simulated", "the paper says"]));
    for (claim, outcome) in evaluated {
        let [here, simulated] = standings(outcome).map(|standing| standing.to_string());
        page.lines(line([claim.id, &here, &simulated, claim.says]));
    }
    page.lines("\n");
    page.paragraph(format!(
        "How many of the paper's figures are met, within {NEAR}x of the effect or its limit. The \
         column `here` counts ratios and limits; `-`: none to compare. `consort-lab reproduce H6` \
         shows one claim, `--all` all of them, with simulations of the papers' machines."
    ));
    page
}

/// Returns the standing of a claim on this machine, and on simulations of the paper's.
pub(super) fn standings(outcome: &Outcome) -> [Standing; 2] {
    [Standing::here(&outcome.quantities), Standing::simulated(&outcome.quantities)]
}

/// Returns the standing of a claim in sentences, or nothing if there is nothing to compare.
pub(super) fn standing(outcome: &Outcome) -> String {
    let [here, simulated] = standings(outcome);
    let one = |where_at: String, standing: &Standing| {
        let fitted = match standing.fitted.len() {
            0 => String::new(),
            count => format!("Met, but not counted, because a parameter was fitted: {count}. "),
        };
        if standing.count() == 0 {
            return fitted;
        }
        let missed = match &standing.missed[..] {
            [] => String::new(),
            [one] => format!(", not {one}"),
            [one, rest @ ..] => format!(", not {one}, and {} more", rest.len()),
        };
        let (met, count) = (standing.met.len(), standing.count());
        let word = match standing.word() {
            "partly" => "holds partly",
            word => word,
        };
        format!(
            "It {word} {where_at}: {met} of {count} figures within {NEAR}x of the effect or the \
             limit{missed}. {fitted}"
        )
    };
    let cores = counted(Algorithms::here().cores(), "core");
    one(format!("here, on {cores}"), &here) + &one("simulated".to_owned(), &simulated)
}

/// Returns a claim's figure or table, its verdict and its standing.
pub(super) fn in_full(claim: &Claim, outcome: &Outcome) -> Page {
    let mut page = Page::default();
    page.lines(format!("{}: {}\n\n", claim.id, claim.about));
    page.append(&outcome.page);
    page.lines("\n");
    page.paragraph(format!("Mechanism: {}", claim.mechanism));
    let place = if is_simulated(claim) { "Simulated" } else { "Here" };
    page.paragraph(format!("{place}: {}", outcome.verdict));
    let standing = standing(outcome);
    if !standing.is_empty() {
        page.paragraph(standing.trim_end());
    }
    if let Place::HereAndSimulated(..) = claim.place {
        quantity::add_tables(&mut page, &outcome.quantities);
    }
    page
}
