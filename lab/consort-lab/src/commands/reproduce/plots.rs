//! The claims in a report: the paper's figures next to simulations and measurements, and the
//! sources of the numbers of the papers' machines.

use crate::{
    claims::{self, Claim},
    figures::{
        experiment::Outcome,
        figure::Paper,
        quantity::{Quantity, simulated_machines, text},
    },
};
use consort_bench::{
    page::{Curves, Part},
    units::number,
};
use consort_report::{
    Axis, Bar, Bars, Cell, Document, Group, Lines, Point, Scale, Series, Table, Tone,
};
use consort_sim::machines::Machine;

use super::{
    evidence,
    text::{is_simulated, place, standings},
};
use consort_console::report::{add_page, axes};

/// The largest number of groups of bars. The table has all figures.
const MOST_GROUPS: usize = 24;
/// The names of bars.
const KINDS: [&str; 5] = ["paper", "model", "simulated", "fitted", "this machine"];

/// The claims and their outcomes.
type Evaluated = [(&'static Claim, Outcome)];

/// Adds a section for each claim, and one for the machines.
pub(super) fn plots(document: &mut Document, evaluated: &Evaluated) {
    document.section("The claims");
    let header = ["claim", "the paper says", "here", "simulated", "met, but fitted", "where"];
    let mut table = Table::new(header.into_iter().chain(["what is seen"])).numbers([4]);
    for (claim, outcome) in evaluated {
        let [here, simulated] = standings(outcome);
        let fitted = simulated.fitted.len().to_string();
        let [here, simulated] = [here, simulated].map(|standing| standing.to_string());
        let verdict = &*outcome.verdict;
        let cells = [claim.id, claim.says, &here, &simulated, &fitted, place(claim), verdict];
        table.row(cells.map(Cell::text));
    }
    document.table(table);
    for (claim, outcome) in evaluated {
        document.section_as(claim.id, format!("{}: {}", claim.id, claim.about));
        one(document, claim, outcome);
    }
    machines(document, evaluated);
}

fn one(document: &mut Document, claim: &Claim, outcome: &Outcome) {
    let paper = if claim.paper == "none" { "no paper" } else { claim.paper };
    let verdict = match is_simulated(claim) {
        true => "Simulated",
        false => "This machine",
    };
    document.facts([
        ("Paper", paper),
        ("The paper says", claim.says),
        (verdict, outcome.verdict.as_str()),
    ]);
    if outcome.quantities.iter().any(|one| one.holds == Some(false)) {
        document.note(Tone::Bad, "A limit of the paper is missed.");
    }
    evidence::add(document, claim, outcome);
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for Quantity { machine, unit, .. } in &outcome.quantities {
        if !kinds.contains(&(*machine, *unit)) {
            kinds.push((machine, unit));
        }
    }
    for (machine, unit) in kinds {
        let is_its = |one: &&Quantity| (one.machine, one.unit) == (machine, unit);
        let its: Vec<&Quantity> = outcome.quantities.iter().filter(is_its).collect();
        bars(document, claim.id, (machine, unit), &its);
    }
    for part in outcome.page.parts() {
        if let Part::Curves(curves) = part {
            lines(document, claim.id, curves);
        }
    }
    figures(document, &outcome.quantities);
    let mut inner = Document::default();
    add_page(&mut inner, &outcome.page);
    document.details("As the terminal shows it", inner);
}

/// Plots a line for each way of curves.
fn lines(document: &mut Document, claim: &str, curves: &Curves) {
    let Curves { values, by, numbers, ways } = curves;
    let scale = axes::scale_of(numbers.iter().copied());
    let label = values.split(", ").find_map(in_words).unwrap_or_else(|| values.clone());
    let series = ways.iter().map(|(way, values)| {
        let points = numbers.iter().zip(values).map(|(&x, &y)| Point {
            x,
            y,
            interval: None,
            x_text: format!("{x} {by}"),
            y_text: number(y),
        });
        Series::new(way, points.collect())
    });
    let all = ways.iter().flat_map(|(_, values)| values.iter().copied());
    document.curves(&Lines {
        title: format!("{claim}, {values} by {by}"),
        x: Axis::new(by, scale),
        y: Axis::new(label, axes::scale_of(all)),
        series: series.collect(),
        diagonal: None,
    });
}

/// Returns the values of a figure, one for each bar.
fn values(quantity: &Quantity) -> [Option<f64>; 5] {
    let Quantity { paper, model, simulated, fitted, native, .. } = quantity;
    [paper.map(Paper::number), *model, *simulated, *fitted, *native]
}

/// Plots a bar for each value of each figure. If there are too many figures, those of the paper are
/// plotted first.
fn bars(
    document: &mut Document,
    claim: &str,
    (machine, unit): (&str, &str),
    quantities: &[&Quantity],
) {
    let given: Vec<&Quantity> =
        quantities.iter().copied().filter(|one| one.paper.is_some()).collect();
    let is_many = quantities.len() > MOST_GROUPS && !given.is_empty();
    let shown = if is_many { &given[..] } else { quantities };
    let shown = &shown[..shown.len().min(MOST_GROUPS)];
    let group = |quantity: &&Quantity| {
        let bars = values(quantity).into_iter().enumerate().filter_map(|(series, value)| {
            let value = value?;
            let text = if series == 0 { quantity.paper_text() } else { text(Some(value)) };
            Some(Bar { series, value, interval: None, text })
        });
        Group { name: quantity.quantity.clone(), bars: bars.collect() }
    };
    let all = || shown.iter().flat_map(|one| values(one)).flatten();
    let scale = if all().any(|value| value < 0.0) { Scale::Linear } else { axes::scale_of(all()) };
    let logarithmic = if scale == Scale::Log { ", logarithmic" } else { "" };
    let shown_of = match quantities.len() - shown.len() {
        0 => String::new(),
        _ => format!(" ({} of {} figures)", shown.len(), quantities.len()),
    };
    let in_unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    let label = in_words(unit).unwrap_or_else(|| format!("Value, {unit}"));
    document.bars(&Bars {
        title: format!("{claim}, {machine}{in_unit}{shown_of}"),
        axis: Axis::new(format!("{label}{logarithmic}"), scale),
        of: "figure".to_owned(),
        series: KINDS.map(str::to_owned).into(),
        groups: shown.iter().map(group).collect(),
        stacked: false,
    });
}

/// Returns the label of an axis of a unit, if the unit says what it measures.
fn in_words(unit: &str) -> Option<String> {
    Some(match unit {
        "" => "Number".to_owned(),
        "x" => "Ratio, x".to_owned(),
        "ratio" => "Ratio".to_owned(),
        "us" | "ns" | "ms" | "cycles" => format!("Time, {unit}"),
        "MB/s" | "GB/s" | "Mops/s" | "Gflop/s" => format!("Rate, {unit}"),
        "%" => "Share, %".to_owned(),
        _ => return None,
    })
}

/// Adds a table of all figures.
fn figures(document: &mut Document, quantities: &[Quantity]) {
    let header = ["machine", "figure", "unit", "paper", "simulated", "this machine", "error"];
    let mut table = Table::new(header.into_iter().chain(["result", "in the paper"])).numbers(3..7);
    for quantity in quantities {
        let error = Cell::text(&quantity.error_text());
        let error = match quantity.holds {
            Some(true) => error.toned(Tone::Good),
            Some(false) => error.toned(Tone::Bad),
            None => error,
        };
        let cells = [
            quantity.machine.to_owned(),
            quantity.quantity.clone(),
            quantity.unit.to_owned(),
            quantity.paper_text(),
            quantity.simulated_text(),
            text(quantity.native),
        ];
        let place = quantity.figure.and_then(claims::figure).map_or("", |figure| figure.place);
        let cells = cells.iter().map(|text| Cell::text(text));
        table.row(cells.chain([error, evidence::result(quantity), Cell::text(place)]));
    }
    let mut inner = Document::default();
    let is_long = quantities.len() > MOST_GROUPS;
    inner.table(table);
    match is_long {
        true => document.details(format!("All {} figures", quantities.len()), inner),
        false => document.append(inner),
    }
}

/// Adds the sources of the numbers of the papers' machines.
fn machines(document: &mut Document, evaluated: &Evaluated) {
    let quantities = evaluated.iter().flat_map(|(_, outcome)| &outcome.quantities);
    let names = simulated_machines(quantities).into_iter();
    let found: Vec<Machine> = names.filter_map(|name| Machine::find(name).ok()).collect();
    if found.is_empty() {
        return;
    }
    document.section("The simulated machines");
    for machine in found {
        document.subsection(machine.name.clone());
        document.facts([
            ("Machine", machine.title.clone()),
            ("Source", machine.source.clone()),
            ("Parameters", machine.provenance.in_words()),
        ]);
        let mut fitted = Table::new(["fitted parameter", "to these figures"]);
        for (parameter, figures) in &machine.provenance.fitted {
            let name = |id: &String| {
                claims::figure(id).map_or(id.clone(), |one| format!("{id}: {}", one.quantity))
            };
            let names: Vec<String> = figures.iter().map(name).collect();
            fitted.row([Cell::text(parameter), Cell::text(&names.join("; "))]);
        }
        document.table(fitted);
        let mut assumed = Document::default();
        machine.provenance.assumed.iter().for_each(|name| assumed.paragraph(name.clone()));
        document.details("Assumed parameters", assumed);
    }
}
