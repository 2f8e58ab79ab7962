//! Plots of simulations: times over sizes, or as bars, and the causes of a PE's time.

use crate::simulation::{Conditions, Simulated, Spent};
use consort_report::{Axis, Bar, Bars, Document, Group, Lines, Point, Scale, Series};
use consort_sim::Cause;

use consort_console::{output::time, report::axes};

/// Adds sections of plots and of the machine.
pub(super) fn plots(document: &mut Document, conditions: &Conditions, all: &[Simulated]) {
    let machine = &conditions.machine;
    if let Some(first) = all.first() {
        document.section("Plots");
        let query = first.program.query;
        let title = format!("{} on {}, {} PEs", query.collective, machine.name, query.pes);
        let same_size = |one: &Simulated, next: &Simulated| one.program.query == next.program.query;
        let by_size: Vec<&[Simulated]> = all.chunk_by(same_size).collect();
        if by_size.len() > 1 {
            over_sizes(document, conditions, &title, all);
        } else {
            times(document, &title, first.program.mode.time_name(), all);
        }
        for of_size in [by_size.first(), by_size.last().filter(|_| by_size.len() > 1)] {
            of_size.into_iter().for_each(|of_size| causes(document, conditions, of_size));
        }
    }
    document.section("The simulated machine");
    document.facts([
        ("Name", machine.name.clone()),
        ("Machine", machine.title.clone()),
        ("Source", machine.source.clone()),
        ("Parameters", machine.provenance.in_words()),
        ("Simulated", conditions.how()),
    ]);
}

fn longest(all: &[Simulated]) -> f64 {
    all.iter().map(|one| one.call_ns).fold(0.0, f64::max)
}

fn over_sizes(document: &mut Document, conditions: &Conditions, title: &str, all: &[Simulated]) {
    let lines = |of: &dyn Fn(&Simulated) -> Option<(f64, String)>| {
        let mut series: Vec<Series> = Vec::new();
        for one in all {
            let Some((y, y_text)) = of(one) else { continue };
            let (name, bytes) = (one.program.candidate.brief(), one.program.query.bytes);
            let x_text = conditions.size(bytes);
            let point = Point { x: bytes as f64, y, interval: None, x_text, y_text };
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                None => series.push(Series::new(name, vec![point])),
            }
        }
        series
    };
    document.curves(&Lines {
        title: title.to_owned(),
        x: axes::sizes("Size of a block"),
        y: axes::times("Time of a call, simulated", Scale::Log, longest(all)),
        series: lines(&|one| Some((one.call_ns, time(one.call_ns)))),
        diagonal: None,
    });
    document.curves(&Lines {
        title: format!("{title}: bytes a second"),
        x: axes::sizes("Size of a block"),
        y: Axis::new("Throughput, MB/s", Scale::Linear),
        series: lines(&|one| one.mbps().map(|mbps| (mbps, format!("{mbps:.2} MB/s")))),
        diagonal: None,
    });
}

fn times(document: &mut Document, title: &str, what: &str, all: &[Simulated]) {
    let group = |one: &Simulated| {
        let (value, text) = (one.call_ns, time(one.call_ns));
        let bars = vec![Bar { series: 0, value, interval: None, text }];
        Group { name: one.program.candidate.brief(), bars }
    };
    let scale = axes::scale_of(all.iter().map(|one| one.call_ns));
    document.bars(&Bars {
        title: title.to_owned(),
        axis: axes::times("Time of a call, simulated", scale, longest(all)),
        of: "algorithm".to_owned(),
        series: vec![what.to_owned()],
        groups: all.iter().map(group).collect(),
        stacked: false,
    });
}

/// Plots the causes of a PE's time, for all algorithms and one size.
fn causes(document: &mut Document, conditions: &Conditions, of_size: &[Simulated]) {
    let Some(first) = of_size.first() else { return };
    let group = |one: &Simulated| {
        let Spent { by_cause_ns, waiting_ns } = one.mean;
        let spent = by_cause_ns.into_iter().chain([waiting_ns]).enumerate();
        let spent = spent.filter(|(_, ns)| *ns > 0.0);
        let bar = |(series, value)| Bar { series, value, interval: None, text: time(value) };
        Group { name: one.program.candidate.brief(), bars: spent.map(bar).collect() }
    };
    let names = Cause::EVERY.map(Cause::name).into_iter().chain(["waiting"]);
    let bytes = first.program.query.bytes;
    let size = if bytes > 0 { format!(" of {}", conditions.size(bytes)) } else { String::new() };
    document.bars(&Bars {
        title: format!("Where a PE's time goes in a call{size}, mean of all PEs"),
        axis: axes::times("Time of a call", Scale::Linear, longest(of_size)),
        of: "algorithm".to_owned(),
        series: names.map(str::to_owned).collect(),
        groups: of_size.iter().map(group).collect(),
        stacked: true,
    });
}
