//! Shows the results: for each situation the best lock, or all locks.

use super::race::{Cell, Measured, Results};
use crate::{
    page::Page,
    units::{counted, number, ratio, time},
};

impl Results {
    /// Returns the note about busy processes.
    fn busy_note(&self) -> String {
        match self.busy {
            0 => String::new(),
            1 => ", next to a busy process".to_owned(),
            busy => format!(", next to {busy} busy processes"),
        }
    }

    fn note_absent(&self, page: &mut Page) {
        for (library, why, _) in &self.absent {
            page.paragraph(format!("not measured: {library}: {why}"));
        }
    }
}

/// Adds the best locks to a page, in a line for each situation and number of threads.
pub fn show_best(page: &mut Page, results: &Results) {
    let header = ["", "threads", "fastest", "default", "best other", "longest", "other's"];
    page.table(header, results.cells.iter().map(best).collect(), [1, 3, 5, 6]);
    page.paragraph(format!(
        "Default: the rate of consort_sync's default lock, relative to that of the fastest lock of \
         another library. Longest: the longest wait of each of the two, in blocks of {}{}.",
        time(results.length.as_secs_f64() * 1e9),
        results.busy_note()
    ));
    results.note_absent(page);
}

/// Returns the fastest of some locks.
fn fastest<'m>(locks: impl Iterator<Item = &'m Measured>) -> Option<&'m Measured> {
    locks.max_by(|one, other| one.mops.median.total_cmp(&other.mops.median))
}

fn best(cell: &Cell) -> Vec<String> {
    let default = cell.locks.first();
    let other = fastest(cell.locks.iter().filter(|lock| lock.is_peer));
    let name = |lock: Option<&Measured>| lock.map_or("-", |lock| lock.name).to_owned();
    let longest = |lock: Option<&Measured>| lock.map_or("-".to_owned(), Measured::longest);
    let over = default.zip(other).map(|(one, other)| one.mops.median / other.mops.median);
    vec![
        cell.situation.name().to_owned(),
        cell.threads.to_string(),
        name(fastest(cell.locks.iter())),
        over.map_or("-".to_owned(), ratio),
        name(other),
        longest(default),
        longest(other),
    ]
}

/// Adds all locks to a page: a table for each situation and number of threads, the fastest lock
/// first. If there is only one table, says below it which lock is the fastest.
pub fn show_all(page: &mut Page, results: &Results) {
    for cell in &results.cells {
        let threads = counted(cell.threads as u64, "thread");
        let (situation, busy_note) = (cell.situation, results.busy_note());
        page.paragraph(format!("{situation}, {threads}{busy_note}: {}", situation.about()));
        let header = ["", "ops/s", "half", "CPU/op", "p50", "p99", "p99.9", "longest"];
        let mut locks: Vec<&Measured> = cell.locks.iter().collect();
        locks.sort_by(|one, other| other.mops.median.total_cmp(&one.mops.median));
        page.table(header, locks.into_iter().map(figures).collect(), 1..8);
    }
    page.paragraph(format!(
        "Half: the share of the busier half of the threads; 0.50 is fair. CPU/op: the processor \
         time of an operation. Then the waits, in blocks of {}.",
        time(results.length.as_secs_f64() * 1e9)
    ));
    results.note_absent(page);
    if let [cell] = &results.cells[..]
        && let [_, _, fastest, over, other, ..] = &best(cell)[..]
    {
        let default = cell.locks.first().map_or("-", |lock| lock.name);
        page.paragraph(format!(
            "Fastest: {fastest}. The default, {default}: {over} of the rate of {other}."
        ));
    }
}

fn figures(lock: &Measured) -> Vec<String> {
    let quantile = |share| time(lock.waits.quantile_ns(share) as f64);
    vec![
        lock.name.to_owned(),
        rate(lock.mops.median * 1e6),
        format!("{:.2}", lock.busier_half),
        lock.processor_ns.map_or("-".to_owned(), time),
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        lock.longest(),
    ]
}

impl Measured {
    fn longest(&self) -> String {
        time(self.waits.longest_ns() as f64)
    }
}

/// Formats operations per second: `167M`, `2.13k`, `900`.
fn rate(per_second: f64) -> String {
    match per_second {
        few if few < 999.5 => format!("{few:.0}"),
        some if some < 999_500.0 => format!("{}k", number(some / 1e3)),
        many => format!("{}M", number(many / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        let rates = [0.0, 900.4, 999.6, 2134.0, 45_678.0, 999_600.0, 167e6].map(rate);
        assert_eq!(rates, ["0", "900", "1.00k", "2.13k", "45.7k", "1.00M", "167M"]);
    }
}
