//! `consort tune --record`: recorded calls of programs, and the time that they take by the choices
//! before tuning and by the new ones.
//!
//! Both choices for a query are measured alternately in the same launches. Calls with entry and
//! exit barriers then use the same barrier, the fastest known.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use consort::tune::{Algorithms, Candidate, Query};
use consort_bench::{
    harness::NativeWorkbench,
    page::Page,
    query_json::{self, QueryJson, describe},
    wisdom::warn_if_untrusted,
};
use consort_fabric::CallSpec;
use consort_tuner::{
    Catalog, Measurements, Mix, Race, Selector, Wisdom, Workload, same, shares_ahead,
};
use serde::Serialize;

use super::watch::Meter;
use consort_console::{
    args::MOST_PES,
    output::{brief, ratio, time},
};

/// The launches in which a query's choices are compared.
const LAUNCHES: u32 = 8;
/// The least time for a query.
const SHORTEST: Duration = Duration::from_millis(10);
/// The most kinds of calls that are shown.
const MOST_SHOWN: usize = 20;
/// The largest tuned size, as on the command line.
const MOST_BYTES: u64 = 1 << 30;

/// The recorded calls of one query, and the candidate that served them before.
struct RecordedCall {
    query: Query,
    calls: u64,
    before: Candidate,
    /// The expected time of these calls, in nanoseconds.
    expected_ns: f64,
}

/// The recorded calls of programs.
pub(super) struct RecordedCalls {
    /// The algorithms that serve the calls.
    algorithms: &'static Algorithms,
    calls: Vec<RecordedCall>,
    /// The number of calls of vector variants.
    untunable_count: u64,
}

/// The recorded calls of one query, measured by both choices, in nanoseconds per call.
#[derive(Debug, Serialize)]
struct ReplayedCall {
    #[serde(flatten, with = "QueryJson")]
    query: Query,
    calls: u64,
    #[serde(serialize_with = "query_json::shown")]
    before: Candidate,
    before_ns: f64,
    #[serde(serialize_with = "query_json::shown")]
    after: Candidate,
    after_ns: f64,
}

/// The time of all recorded calls by both choices.
#[derive(Debug, Serialize)]
pub(super) struct ReplayResult {
    before_ns: f64,
    after_ns: f64,
    /// The number of kinds of calls that were not measured.
    unmeasured_count: usize,
    /// The number of calls of vector variants, which are not tuned.
    untunable_count: u64,
    rows: Vec<ReplayedCall>,
}

/// Returns the candidate that serves a query, and its expected time.
fn chosen(algorithms: &Algorithms, wisdom: &Wisdom, query: &Query) -> Option<(Candidate, f64)> {
    let selector = Selector::new(algorithms, Measurements::new(Some(wisdom), algorithms.cores()));
    let selected = selector.select(&CallSpec::from(query))?;
    let expected_ns = selector.expected_ns(&selected).unwrap_or(1.0);
    Some((selected.candidate.into_owned(), expected_ns))
}

impl RecordedCalls {
    /// Reads files, and adds up their calls. `wisdom` served the calls so far, by `algorithms`.
    ///
    /// # Errors
    /// When a file cannot be read, or no recorded call can be tuned.
    pub(super) fn load(
        paths: &[PathBuf],
        algorithms: &'static Algorithms,
        wisdom: &Wisdom,
    ) -> Result<Self> {
        let mut mix = Mix::default();
        for path in paths {
            mix.merge(&Mix::load(path)?);
            warn_if_untrusted(path);
        }
        for (query, _) in mix.calls() {
            let fits = query.pes <= MOST_PES && query.bytes <= MOST_BYTES;
            ensure!(
                fits,
                "{}: more than {MOST_PES} PEs or 1 GiB cannot be tuned",
                describe(&query)
            );
        }
        let is_vector = |(query, _): &(Query, u64)| query.collective.is_vector();
        let untunable_count = mix.calls().filter(is_vector).map(|(_, calls)| calls).sum();
        let call = |(query, calls): (Query, u64)| {
            let (before, ns) = chosen(algorithms, wisdom, &query)?;
            Some(RecordedCall { query, calls, before, expected_ns: calls as f64 * ns })
        };
        let mut calls: Vec<RecordedCall> = mix.tunable().calls().filter_map(call).collect();
        calls.sort_by(|one, other| other.expected_ns.total_cmp(&one.expected_ns));
        calls.first().context("no recorded call can be tuned: vector variants cannot")?;
        Ok(Self { algorithms, calls, untunable_count })
    }

    /// Returns these queries, weighted by the time spent in their calls.
    pub(super) fn workload(&self) -> Workload {
        Workload::exactly(self.calls.iter().map(|call| (call.query, call.expected_ns)))
    }

    /// Measures the old choices against those of `wisdom`, for about `budget`.
    ///
    /// # Errors
    /// When measuring fails.
    pub(super) fn replay(
        &self,
        wisdom: &Wisdom,
        budget: Duration,
        stop: &AtomicBool,
        meter: &mut Meter,
    ) -> Result<ReplayResult> {
        let mut bench = NativeWorkbench::new(self.algorithms.fabric(), Some(wisdom));
        let (started, mut rows) = (Instant::now(), Vec::new());
        let weights: Vec<f64> = self.calls.iter().map(|call| call.expected_ns).collect();
        let parts = shares_ahead(&weights);
        for (index, (call, part)) in self.calls.iter().zip(parts).enumerate() {
            let left = budget.saturating_sub(started.elapsed());
            // Relaxed: the flag publishes no other data.
            if stop.load(Relaxed) || left < SHORTEST {
                break;
            }
            meter.show(index, self.calls.len(), &format!("comparing: {}", describe(&call.query)));
            let share = left.mul_f64(part).max(SHORTEST);
            rows.extend(call.replay(&mut bench, wisdom, share)?);
        }
        let sum =
            |ns: fn(&ReplayedCall) -> f64| rows.iter().map(|row| row.calls as f64 * ns(row)).sum();
        Ok(ReplayResult {
            before_ns: sum(|row| row.before_ns),
            after_ns: sum(|row| row.after_ns),
            unmeasured_count: self.calls.len() - rows.len(),
            untunable_count: self.untunable_count,
            rows,
        })
    }
}

impl RecordedCall {
    /// Measures both choices; `None` if they cannot be measured.
    fn replay(
        &self,
        bench: &mut NativeWorkbench,
        wisdom: &Wisdom,
        budget: Duration,
    ) -> Result<Option<ReplayedCall>> {
        let Self { query, calls, ref before, .. } = *self;
        let Some((after, _)) = chosen(bench.algorithms(), wisdom, &query) else { return Ok(None) };
        if bench.candidates(&query).is_empty() {
            return Ok(None);
        }
        let is_same = same(bench, &query, before, &after);
        let field = if is_same { vec![after] } else { vec![after, before.clone()] };
        let mut race = Race::new(field.clone());
        race.run(bench, &query, LAUNCHES, budget)
            .with_context(|| format!("comparing failed at {}", describe(&query)))?;
        let medians: Option<Vec<f64>> =
            race.samples().iter().map(|sample| Some(sample.as_ref()?.median_ns)).collect();
        let Some(medians) = medians else { return Ok(None) };
        let (after_ns, before_ns) = (medians[0], medians[medians.len() - 1]);
        let after = field[0].clone();
        Ok(Some(ReplayedCall { query, calls, before: before.clone(), before_ns, after, after_ns }))
    }
}

impl ReplayResult {
    pub(super) fn show(&self, page: &mut Page) {
        let mut rows = Vec::new();
        for row in self.rows.iter().take(MOST_SHOWN) {
            let ReplayedCall { query, calls, before, before_ns, after, after_ns } = row;
            let is_same = before_ns == after_ns;
            rows.push(vec![
                describe(query),
                calls.to_string(),
                if is_same { String::new() } else { brief(before) },
                if is_same { String::new() } else { time(*before_ns) },
                brief(after),
                time(*after_ns),
                if is_same { String::new() } else { ratio(before_ns / after_ns) },
            ]);
        }
        page.lines(
            "Recorded calls, those with the most time first; gain: before / now, empty if the \
             choice stays\n",
        );
        let header = ["recorded", "calls", "before", "time", "now", "time", "gain"];
        page.table(header, rows, [1, 3, 5, 6]);
        let Self { before_ns, after_ns, rows, unmeasured_count, untunable_count } = self;
        if rows.len() > MOST_SHOWN {
            page.lines(format!("... and {} kinds more\n", rows.len() - MOST_SHOWN));
        }
        let change = (after_ns / before_ns - 1.0) * 100.0;
        if !rows.is_empty() {
            page.lines(format!(
                "\nAll these calls take {} with the choices before, and {} with the choices now: \
                 {change:+.1} %\n",
                time(*before_ns),
                time(*after_ns)
            ));
        }
        if *unmeasured_count > 0 {
            page.lines(format!(
                "Kinds of calls that were not compared: {unmeasured_count}, because the time was \
                 over or they cannot be measured\n"
            ));
        }
        if *untunable_count > 0 {
            page.lines(format!(
                "{untunable_count} calls of vector variants are not tuned: choices do not depend \
                 on their lengths\n"
            ));
        }
    }
}
