//! `consort tune --record`: the recorded calls of programs, and their time with the choices before
//! tuning and with the new choices.
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
    gain::{self, Median},
    harness::NativeWorkbench,
    page::Page,
    query_json::{self, QueryJson},
    wisdom::warn_if_untrusted,
};
use consort_fabric::CallSpec;
use consort_tuner::{
    Catalog, Measurements, Mix, Race, Sample, Selector, Wisdom, Workload, same, shares_ahead,
};
use serde::Serialize;

use super::watch::Meter;
use consort_console::{args::MOST_PES, output::time};

/// The launches in which a query's choices are compared.
const LAUNCHES: u32 = 8;
/// The least time for a query.
const SHORTEST: Duration = Duration::from_millis(10);
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
    before_ci95_ns: Option<(f64, f64)>,
    #[serde(serialize_with = "query_json::shown")]
    after: Candidate,
    after_ns: f64,
    after_ci95_ns: Option<(f64, f64)>,
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
            ensure!(fits, "{query}: more than {MOST_PES} PEs or 1 GiB cannot be tuned");
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
            meter.show(index, self.calls.len(), &format!("comparing: {}", call.query));
            let share = left.mul_f64(part).max(SHORTEST);
            rows.extend(call.replay(&mut bench, wisdom, share)?);
        }
        let all = |time: fn(&ReplayedCall) -> Median| {
            sum(rows.iter().map(|row| (row.calls, time(row)))).0
        };
        Ok(ReplayResult {
            before_ns: all(ReplayedCall::before),
            after_ns: all(ReplayedCall::after),
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
            .with_context(|| format!("comparing failed at {query}"))?;
        let times: Option<Vec<Median>> =
            race.samples().iter().map(|one| one.map(time_of)).collect();
        let Some(times) = times else { return Ok(None) };
        let (after, before) = (field[0].clone(), before.clone());
        let ((after_ns, after_ci95_ns), (before_ns, before_ci95_ns)) =
            (times[0], times[times.len() - 1]);
        Ok(Some(ReplayedCall {
            query,
            calls,
            before,
            before_ns,
            before_ci95_ns,
            after,
            after_ns,
            after_ci95_ns,
        }))
    }
}

/// Returns a sample's median with its interval; a single launch says little about the next.
fn time_of(sample: Sample) -> Median {
    (sample.median_ns, (sample.launches > 1).then_some(sample.ci95_ns))
}

/// Returns the sum of independent times, each as often as its number of calls. The squared
/// distances from the medians to the ends add up (Zou and Donner, "Construction of confidence
/// limits about effect measures: A general approach", Statistics in Medicine 2008).
fn sum(times: impl Iterator<Item = (u64, Median)>) -> Median {
    let (mut sum, mut below, mut above, mut is_known) = (0.0, 0.0_f64, 0.0_f64, true);
    for (calls, (ns, ci95)) in times {
        let calls = calls as f64;
        let (low, high) = ci95.unwrap_or((ns, ns));
        sum += calls * ns;
        below = below.hypot(calls * (ns - low));
        above = above.hypot(calls * (high - ns));
        is_known &= ci95.is_some();
    }
    (sum, is_known.then_some((sum - below, sum + above)))
}

impl ReplayedCall {
    fn is_same(&self) -> bool {
        self.before_ns == self.after_ns
    }

    fn before(&self) -> Median {
        (self.before_ns, self.before_ci95_ns)
    }

    fn after(&self) -> Median {
        (self.after_ns, self.after_ci95_ns)
    }
}

impl ReplayResult {
    /// Adds a table of at most `most` kinds of calls, and the time of all calls.
    pub(super) fn show(&self, page: &mut Page, most: usize) {
        let mut rows = Vec::new();
        for row in self.rows.iter().take(most) {
            let ReplayedCall { query, calls, before, before_ns, after, after_ns, .. } = row;
            let of_change = |text: String| if row.is_same() { String::new() } else { text };
            rows.push(vec![
                query.to_string(),
                calls.to_string(),
                of_change(before.brief()),
                of_change(time(*before_ns)),
                after.brief(),
                time(*after_ns),
                of_change(gain::text(&gain::between(row.before(), row.after()))),
            ]);
        }
        page.paragraph(
            "Recorded calls, those with the most time first; gain: before / now, with its 95 % \
             interval, empty if the choice stays",
        );
        let header = ["recorded", "calls", "before", "time", "now", "time", "gain"];
        page.table(header, rows, [1, 3, 5]);
        let Self { before_ns, after_ns, rows, unmeasured_count, untunable_count } = self;
        if rows.len() > most {
            page.lines(format!("... and {} kinds more\n", rows.len() - most));
        }
        let changed = || rows.iter().filter(|row| !row.is_same());
        let gain = gain::between(
            sum(changed().map(|row| (row.calls, row.before()))),
            sum(changed().map(|row| (row.calls, row.after()))),
        );
        if !rows.is_empty() {
            let gain = match changed().count() {
                0 => "no choice changes".to_owned(),
                _ => format!("those whose choice changes: {}", gain::text(&gain)),
            };
            page.paragraph(format!(
                "All these calls take {} with the choices before, and {} with the choices now; \
                 {gain}.",
                time(*before_ns),
                time(*after_ns)
            ));
        }
        if *unmeasured_count > 0 {
            page.paragraph(format!(
                "Kinds of calls that were not compared: {unmeasured_count}, because time ran \
                 out or they cannot be measured."
            ));
        }
        if *untunable_count > 0 {
            page.paragraph(format!(
                "{untunable_count} calls of vector variants are not tuned: their choices cannot \
                 depend on lengths, because each PE knows only its own."
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_independent_times_partly_cancel() {
        let one = (100.0, Some((97.0, 104.0)));
        assert_eq!(sum([(2, one)].into_iter()), (200.0, Some((194.0, 208.0))));
        let (both, ci95) = sum([(1, one), (1, (50.0, Some((46.0, 53.0))))].into_iter());
        assert_eq!((both, ci95), (150.0, Some((145.0, 155.0))));
        assert_eq!(sum([(1, one), (1, (50.0, None))].into_iter()), (150.0, None));
    }
}
