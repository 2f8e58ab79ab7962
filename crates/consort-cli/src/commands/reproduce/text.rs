//! A claim for people: its figure or table, its verdict, and the simulated machines.

use consort_bench::{
    claims::{Claim, Place},
    figures::{experiment::Outcome, quantity::Quantity},
    page::Page,
};
use consort_sim::machines::Machine;

/// Whether it is only simulated.
pub(super) fn is_simulated(claim: &Claim) -> bool {
    matches!(claim.place, Place::Simulated)
}

/// Where the verdict is from.
pub(super) fn place(claim: &Claim) -> &'static str {
    if is_simulated(claim) { "simulated" } else { "here" }
}

/// A claim's figure or table, and its verdict.
pub(super) fn in_full(claim: &Claim, outcome: &Outcome) -> Page {
    let mut page = Page::default();
    page.lines(format!("{}: {}\n\n", claim.id, claim.says));
    page.append(&outcome.page);
    page.lines("\n");
    // A claim about the SCC alone has a table of its own, with all simulated values.
    if is_simulated(claim) {
        page.paragraph(format!("Simulated: {}", outcome.verdict));
        return page;
    }
    page.paragraph(format!("Here: {}", outcome.verdict));
    if let Place::BesideSimulated(_) = claim.place {
        page.lines("\n");
        simulated(&mut page, &outcome.quantities);
    }
    page
}

/// Adds a table of all simulated quantities and the paper's values, and where the numbers of these
/// machines are from.
fn simulated(page: &mut Page, quantities: &[Quantity]) {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    let (mut machines, mut rows) = (Vec::new(), Vec::new());
    for quantity in quantities {
        let Some(value) = quantity.simulated.or(quantity.fitted) else { continue };
        let fitted = if quantity.fitted.is_some() { " fitted" } else { "" };
        if !machines.contains(&quantity.machine) {
            machines.push(quantity.machine);
        }
        rows.push(vec![
            quantity.machine.to_owned(),
            quantity.quantity.clone(),
            quantity.unit.to_owned(),
            number(quantity.paper),
            format!("{value:.1}{fitted}"),
            error(quantity),
        ]);
    }
    let header = ["simulated machine", "quantity", "unit", "paper", "simulated", "error"];
    page.table(header, rows, [3, 4, 5]);
    for machine in machines.into_iter().filter_map(|name| Machine::find(name).ok()) {
        page.lines("\n");
        page.paragraph(format!("{}: {}", machine.name, machine.provenance.in_words()));
    }
}

/// The error against the paper.
pub(super) fn error(quantity: &Quantity) -> String {
    quantity.rel_error.map_or("-".to_owned(), |error| format!("{:+.0} %", error * 100.0))
}
