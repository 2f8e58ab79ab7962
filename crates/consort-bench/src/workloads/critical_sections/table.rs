//! Shows the rows as tables: one table for a single thread; for each number of threads, a table of
//! operations per second, and a table of times if low load was measured.

use super::{
    race::{Contended, Fairness, Latency, Results, Uncontended},
    row::REFERENCE,
};
use crate::{
    page::Page,
    units::{counted, precision, ratio, time},
};

/// Adds the results to a page.
pub fn show(page: &mut Page, results: &Results) {
    let Results { increments, between, .. } = results;
    let operation = if results.subject.increments() {
        format!("is {} in a critical section", counted(*increments as u64, "increment"))
    } else {
        "puts a value and takes one".to_owned()
    };
    page.paragraph(format!("{}: an operation {operation}", results.subject.name()));
    if !results.uncontended.is_empty() {
        page.lines("\n");
        page.paragraph("1 thread alone, operations in a row");
        let rows = results.uncontended.iter().map(uncontended).collect();
        page.table(["", "median", "± %", "ratio"], rows, 1..4);
    }
    let mut rest = &results.contended[..];
    while let Some(first) = rest.first() {
        let length = rest.iter().take_while(|one| one.threads == first.threads).count();
        let (these, others) = rest.split_at(length);
        rest = others;
        page.lines("\n");
        page.paragraph(format!(
            "{}, up to {} of a loop between two operations",
            counted(first.threads as u64, "thread"),
            counted(*between, "iteration"),
        ));
        let header = ["", "Mops/s", "± %", "ratio", "fairness", "p90", "threads"];
        page.table(header, these.iter().map(contended).collect(), 1..6);
        if these.iter().any(|one| one.low.is_some()) {
            let header = ["an operation takes", "low load", "p99", "full load", "p99"];
            page.table(header, these.iter().map(latencies).collect(), 1..5);
        }
    }
    page.lines("\n");
    for note in notes(results) {
        page.paragraph(note);
    }
}

fn notes(results: &Results) -> Vec<String> {
    let mut notes = vec![format!(
        "Ratio: relative to {REFERENCE} in the same round. For one thread alone, it compares \
         times, so less is better; otherwise operations per second."
    )];
    notes.push(format!(
        "Fairness: the most operations of a thread divided by the fewest, the median and the 90th \
         percentile. Pinned threads are compared over windows of 10 ms in which each had 90 % of a \
         processor; other threads, and those without such a window, over {}.",
        time(results.length.as_secs_f64() * 1e9)
    ));
    if results.contended.iter().any(|one| one.low.is_some()) {
        notes.push(
            "Low load: a thread makes up to 20000 iterations between two operations. A server is \
             an additional thread."
                .to_owned(),
        );
    }
    notes
        .push(format!("Pinned: each thread has one of {}.", counted(results.cores as u64, "core")));
    notes
}

fn uncontended(one: &Uncontended) -> Vec<String> {
    vec![
        one.name.to_owned(),
        time(one.ns.median),
        precision(one.ns.precision()),
        one.ratio.as_ref().map_or("-".to_owned(), |over| ratio(over.median)),
    ]
}

fn contended(one: &Contended) -> Vec<String> {
    // A single thread is fair to itself.
    let of = |value: fn(&Fairness) -> f64| {
        let fairness = one.fairness.as_ref().filter(|_| one.threads > 1);
        fairness.map_or("-".to_owned(), |fairness| format!("{:.2}", value(fairness)))
    };
    vec![
        one.name.to_owned(),
        format!("{:.2}", one.mops.median),
        precision(one.mops.precision()),
        one.ratio.as_ref().map_or("-".to_owned(), |over| ratio(over.median)),
        of(|fairness| fairness.median),
        of(|fairness| fairness.p90),
        if one.is_pinned { "pinned" } else { "unpinned" }.to_owned(),
    ]
}

fn latencies(one: &Contended) -> Vec<String> {
    let of = |latency: Option<Latency>, value: fn(&Latency) -> f64| {
        latency.map_or("-".to_owned(), |latency| time(value(&latency)))
    };
    vec![
        one.name.to_owned(),
        of(one.low, |latency| latency.median_ns),
        of(one.low, |latency| latency.p99_ns),
        of(one.full, |latency| latency.median_ns),
        of(one.full, |latency| latency.p99_ns),
    ]
}
