//! Plots of critical sections: operations per second and times over the number of threads.

use consort_bench::workloads::critical_sections::Entry;
use consort_report::{Axis, Bar, Bars, Document, Group, Lines, Point, Scale, Series};

use consort_console::{output, report::axes};

/// The names of the bars.
const KINDS: [&str; 2] = ["Consort", "other libraries"];
/// The most highlighted lines of a plot.
const MOST_LINES: usize = 10;

/// Adds a section of plots.
pub(crate) fn plots(document: &mut Document, entries: &[Entry]) {
    if !entries.is_empty() {
        document.section("Plots");
    }
    for entries in entries.chunk_by(|one, other| one.situation == other.situation) {
        plots_of(document, entries);
    }
}

/// Adds the plots of a counter, a container or a situation.
fn plots_of(document: &mut Document, entries: &[Entry]) {
    let Some(first) = entries.first() else { return };
    let mut threads: Vec<usize> = of_load(entries, "full").map(|entry| entry.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let (bench, time) = match first.situation {
        Some(situation) => (format!("{}, {situation}", first.bench), "Time of a wait"),
        None => (first.bench.to_owned(), "Time of an operation"),
    };
    let bench = &*bench;
    if threads.len() > 1 {
        over_threads(document, (bench, time), entries);
    } else {
        rates(document, bench, entries);
    }
    times(document, bench, entries, "uncontended", "one thread alone");
    if threads.len() == 1 {
        times(document, bench, entries, "low", "low load");
    }
}

fn of_load<'e>(entries: &'e [Entry], load: &'e str) -> impl Iterator<Item = &'e Entry> {
    entries.iter().filter(move |entry| entry.load == load)
}

fn rate(entry: &Entry) -> Option<(f64, String)> {
    let mops = entry.mops?;
    let interval = entry.ci95_mops.map(|(low, high)| format!(" (95 %: {low:.2} to {high:.2})"));
    Some((mops, format!("{mops:.2} Mops/s{}", interval.unwrap_or_default())))
}

fn latency(entry: &Entry) -> Option<(f64, String)> {
    let ns = entry.median_ns?;
    Some((ns, axes::within(ns, entry.ci95_ns)))
}

/// Adds curves of operations per second and, if measured, of their times or waits.
fn over_threads(document: &mut Document, (bench, time): (&str, &str), entries: &[Entry]) {
    let lines = |of: fn(&Entry) -> Option<(f64, String)>| {
        let mut series: Vec<Series> = Vec::new();
        for entry in of_load(entries, "full") {
            let Some((y, y_text)) = of(entry) else { continue };
            let x_text = consort_bench::units::counted(entry.threads as u64, "thread");
            let interval = entry.ci95_mops.filter(|_| entry.mops == Some(y));
            let point = Point { x: entry.threads as f64, y, interval, x_text, y_text };
            match series.iter_mut().find(|one| one.name == entry.algorithm) {
                Some(one) => one.points.push(point),
                None => series.push(Series::new(entry.algorithm, vec![point])),
            }
        }
        series
    };
    let x = || Axis::new("Number of threads", Scale::Log2);
    let mut series = lines(rate);
    if series.len() > MOST_LINES {
        let most = |one: &Series| one.points.iter().map(|point| point.y).fold(0.0, f64::max);
        let mut ranked: Vec<f64> = series.iter().map(most).collect();
        ranked.sort_by(|one, other| other.total_cmp(one));
        let least = ranked[MOST_LINES - 1];
        series.iter_mut().for_each(|one| one.is_faint = most(one) < least);
    }
    document.curves(&Lines {
        title: format!("{bench}: operations of all threads together"),
        x: x(),
        y: Axis::new("Operations, million a second (median)", Scale::Linear),
        series,
        diagonal: None,
    });
    let longest = of_load(entries, "full").filter_map(|entry| entry.median_ns);
    let title = format!("{bench}: {time}");
    let y = axes::times(&format!("{time} (median)"), Scale::Log, longest.fold(0.0, f64::max));
    document.curves(&Lines { title, x: x(), y, series: lines(latency), diagonal: None });
}

/// Adds bars of operations per second.
fn rates(document: &mut Document, bench: &str, entries: &[Entry]) {
    let threads = entries.iter().map(|entry| entry.threads).max().unwrap_or(1);
    let group = |entry: &Entry| {
        let (value, _) = rate(entry)?;
        let text = format!("{value:.2}");
        Some(one_bar(entry, value, entry.ci95_mops, text))
    };
    document.bars(&Bars {
        title: format!("{bench}: operations of {threads} threads together"),
        axis: Axis::new("Operations, million a second (median)", Scale::Linear),
        of: "lock or scheme".to_owned(),
        series: KINDS.map(str::to_owned).into(),
        groups: of_load(entries, "full").filter_map(group).collect(),
        stacked: false,
    });
}

/// Adds bars of times.
fn times(document: &mut Document, bench: &str, entries: &[Entry], load: &str, of: &str) {
    let all = || of_load(entries, load).filter_map(|entry| entry.median_ns);
    let group = |entry: &Entry| {
        let (value, _) = latency(entry)?;
        Some(one_bar(entry, value, entry.ci95_ns, output::time(value)))
    };
    document.bars(&Bars {
        title: format!("{bench}: an operation, {of}"),
        axis: axes::times(
            "Time of an operation (median)",
            axes::scale_of(all()),
            all().fold(0.0, f64::max),
        ),
        of: "lock or scheme".to_owned(),
        series: KINDS.map(str::to_owned).into(),
        groups: of_load(entries, load).filter_map(group).collect(),
        stacked: false,
    });
}

fn one_bar(entry: &Entry, value: f64, interval: Option<(f64, f64)>, text: String) -> Group {
    let bar = Bar { series: usize::from(entry.is_peer), value, interval, text };
    Group { name: entry.algorithm.to_owned(), bars: vec![bar] }
}
