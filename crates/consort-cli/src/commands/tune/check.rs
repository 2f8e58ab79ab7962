//! `consort tune --check`: measures again how far the choices are from the best.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Result, bail};
use consort::tune::{Candidate, Query};
use consort_bench::{
    harness::NativeWorkbench,
    page::Page,
    query_json::{self, QueryJson},
};
use consort_report::{Axis, Bar, Bars, Document, Group, Scale};
use consort_tuner::{Catalog as _, Check, CheckReport, Penalty, Wisdom, Workload};
use serde::Serialize;
use serde_json::Value;

use super::watch::Meter;
use consort_console::output::time;

/// A choice is good if it is within this share of the best.
const LIMIT: f64 = 0.1;
/// A check passes if this share of the choices is good.
const SHARE: f64 = 0.9;
/// The most bars of a report.
const MOST_BARS: usize = 40;

/// The settings of a check.
pub(super) struct Request<'r> {
    pub(super) workload: &'r Workload,
    pub(super) sample_count: Option<usize>,
    pub(super) budget: Duration,
    pub(super) stop: &'r AtomicBool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct CheckOutput {
    within_10_percent: f64,
    pub(super) passed: bool,
    /// Whether it was interrupted.
    stopped: bool,
    unmeasured_count: usize,
    penalties: Vec<Point>,
}

#[derive(Debug, Serialize)]
struct Point {
    #[serde(flatten, with = "QueryJson")]
    query: Query,
    #[serde(serialize_with = "query_json::shown")]
    chosen: Candidate,
    chosen_ns: f64,
    #[serde(serialize_with = "query_json::shown")]
    best: Candidate,
    best_ns: f64,
    penalty: f64,
    within_noise: bool,
}

impl From<&Penalty> for Point {
    fn from(penalty: &Penalty) -> Self {
        Self {
            query: penalty.query,
            chosen: penalty.chosen.clone(),
            chosen_ns: penalty.chosen_ns,
            best: penalty.best.clone(),
            best_ns: penalty.best_ns,
            penalty: penalty.share(),
            within_noise: penalty.within_noise,
        }
    }
}

/// Checks the choices of `wisdom`.
///
/// # Errors
/// When measuring fails, or nothing was measured.
pub(super) fn run(
    request: &Request<'_>,
    bench: &mut NativeWorkbench,
    wisdom: &Wisdom,
    meter: &mut Meter,
) -> Result<CheckOutput> {
    let Request { workload, sample_count, budget, stop } = *request;
    let cores = bench.algorithms().cores();
    let is_served = |query: &Query| !bench.candidates(query).is_empty();
    let served = workload.queries().filter(is_served).count();
    let total = sample_count.unwrap_or(usize::MAX).min(served);
    let mut done = 0;
    let check = Check { workload, sample_count, budget, cores, stop };
    let report = check.run(bench, Some(wisdom), |penalty| {
        done += 1;
        meter.show(done, total, &penalty.query.to_string());
    })?;
    if report.penalties.is_empty() {
        bail!("nothing was measured: give more time with --budget SECONDS");
    }
    Ok(checked(&report, stop.load(Relaxed)))
}

fn checked(report: &CheckReport, stopped: bool) -> CheckOutput {
    let within_10_percent = report.share_within(LIMIT);
    CheckOutput {
        within_10_percent,
        passed: !stopped && within_10_percent >= SHARE,
        stopped,
        unmeasured_count: report.unmeasured_count,
        penalties: report.penalties.iter().map(Point::from).collect(),
    }
}

impl CheckOutput {
    /// Returns a row for each query.
    pub(super) fn rows(&self) -> Result<Vec<Value>> {
        let rows = self.penalties.iter().map(serde_json::to_value);
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Adds the losses of the choices to a report.
    pub(super) fn plot(&self, document: &mut Document) {
        let group = |point: &Point| {
            let (series, value) = (usize::from(point.within_noise), point.penalty * 100.0);
            let bar = Bar { series, value, interval: None, text: format!("{value:.1} %") };
            Group { name: point.query.to_string(), bars: vec![bar] }
        };
        let mut worst: Vec<&Point> = self.penalties.iter().collect();
        worst.sort_by(|one, other| other.penalty.total_cmp(&one.penalty));
        worst.truncate(MOST_BARS);
        let of_all = match self.penalties.len() {
            all if all > worst.len() => format!(", the worst of {all}"),
            _ => String::new(),
        };
        document.section("Loss of the choices");
        document.bars(&Bars {
            title: format!("Loss of the choices against the best{of_all}"),
            axis: Axis::new("Time more than that of the best, %", Scale::Linear),
            of: "query".to_owned(),
            series: vec!["surely".to_owned(), "within noise".to_owned()],
            groups: worst.into_iter().map(group).collect(),
            stacked: false,
        });
    }

    /// Returns the choices that are not within the limit, or all of them, and the verdict.
    pub(super) fn page(&self, path: &Path, shows_all: bool) -> Page {
        let is_shown = |point: &&Point| shows_all || point.penalty > LIMIT;
        let mut points: Vec<&Point> = self.penalties.iter().filter(is_shown).collect();
        if !shows_all {
            points.sort_by(|one, other| other.penalty.total_cmp(&one.penalty));
        }
        let mut rows = Vec::new();
        for point in points {
            let is_best = point.chosen == point.best;
            let noise = if point.within_noise && !is_best { " ~" } else { "" };
            rows.push(vec![
                point.query.to_string(),
                point.chosen.brief(),
                time(point.chosen_ns),
                if is_best { String::new() } else { point.best.brief() },
                if is_best { String::new() } else { time(point.best_ns) },
                format!("{:.1} %{noise}", point.penalty * 100.0),
            ]);
        }
        let mut page = Page::default();
        if !rows.is_empty() {
            page.table(["query", "chosen", "time", "best", "time", "penalty"], rows, [2, 4, 5]);
            page.lines("~: the confidence intervals of both overlap\n\n");
        }
        let share = self.within_10_percent * 100.0;
        let count = self.penalties.len();
        page.paragraph(format!(
            "{share:.1} % of {count} choices are within 10 % of the best (wisdom: {})",
            path.display()
        ));
        let is_noise = |point: &&Point| point.penalty > LIMIT && point.within_noise;
        match self.penalties.iter().filter(is_noise).count() {
            0 => {}
            1 => page
                .lines("One of the others may be, because its interval and the best's overlap.\n"),
            some => page.lines(format!(
                "{some} of the others may be, because their intervals and the best's overlap.\n"
            )),
        }
        page.lines(if self.stopped {
            "Stopped before the end: no verdict.\n"
        } else if self.passed {
            "Passed: at least 90 % are required.\n"
        } else {
            "Failed: at least 90 % are required; tune with --retune or a higher --rigour.\n"
        });
        if self.unmeasured_count > 0 {
            let count = self.unmeasured_count;
            page.lines(format!(
                "{count} were not measured: give more time with --budget SECONDS.\n"
            ));
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use consort::{
        sync_modes::SyncModes,
        tune::{Collective, Query},
    };
    use consort_fabric::OperatorClass;

    use super::*;

    fn page_of(best_ns: &[f64], shows_all: bool) -> String {
        let penalty = |(index, &best_ns): (usize, &f64)| Penalty {
            query: Query {
                collective: Collective::Broadcast,
                sync: SyncModes::MINE,
                pes: 2,
                bytes: 8 << index,
                operator: OperatorClass::Commutative,
                symmetric: true,
            },
            chosen: Candidate::new("flat"),
            chosen_ns: 1000.0,
            best: Candidate::new(if best_ns < 1000.0 { "direct" } else { "flat" }),
            best_ns,
            within_noise: best_ns > 800.0,
        };
        let penalties = best_ns.iter().enumerate().map(penalty).collect();
        let report = CheckReport { penalties, unmeasured_count: 0 };
        let page = checked(&report, false).page(Path::new("wisdom.toml"), shows_all);
        consort_console::output::page(&page)
    }

    #[test]
    fn only_failed_choices_are_shown_the_worst_first() {
        let text = page_of(&[1000.0, 850.0, 500.0, 990.0], false);
        let place = |penalty| text.find(penalty).expect(penalty);
        assert!(place("100.0 %") < place("17.6 % ~"), "{text}");
        assert!(!text.contains("1.0 %") && text.contains("50.0 % of 4 choices"), "{text}");
        assert!(text.contains("One of the others may be"), "{text}");
        let all = page_of(&[1000.0, 850.0, 500.0, 990.0], true);
        assert!(all.contains("1.0 % ~") && all.contains("0.0 %"), "{all}");
        let good = page_of(&[1000.0, 990.0], false);
        assert!(good.starts_with("100.0 % of 2") && good.contains("Passed"), "{good}");
    }
}
