//! Measures the penalty of the choices: how much slower they are than the best candidates.
//!
//! All distinct candidates are first measured in turn, to find the best. The fastest of many is
//! also the luckiest, so its time is biased. Therefore only the choice and the fastest of the
//! others are measured again, in turn. Each query gets its share of the remaining time. If the time
//! is over during the measurement of a query, the query counts as unmeasured.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use consort_fabric::{CallSpec, Candidate, Query};

use crate::{
    Measurements, Race, Sample, SearchError, Selector, Wisdom, Workbench, Workload,
    estimate::distinct, search::contest::slice,
};

/// The duel gets one of this many equal parts of a query's time.
const DUEL_SHARE: u32 = 3;

/// The number of launches that measure all candidates, and that of the duel.
const FIRST_LAUNCHES: u32 = 3;
const DUEL_LAUNCHES: u32 = 8;

/// The penalty of the choice for a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Penalty {
    /// The query.
    pub query: Query,
    /// The choice of wisdom, or of the model if wisdom has none.
    pub chosen: Candidate,
    /// Its median in nanoseconds per call.
    pub chosen_ns: f64,
    /// The fastest candidate in this check.
    pub best: Candidate,
    /// Its median in nanoseconds per call.
    pub best_ns: f64,
    /// Whether the two confidence intervals overlap.
    pub within_noise: bool,
}

impl Penalty {
    fn of(
        query: &Query,
        (chosen, chosen_sample): &(Candidate, Sample),
        (best, best_sample): &(Candidate, Sample),
    ) -> Self {
        Self {
            query: *query,
            chosen: chosen.clone(),
            chosen_ns: chosen_sample.median_ns,
            best: best.clone(),
            best_ns: best_sample.median_ns,
            within_noise: chosen_sample.ci95_ns.0 <= best_sample.ci95_ns.1,
        }
    }

    /// Returns the relative slowdown of the choice against the best: 0.05 for 5 %, 0 for the best
    /// itself.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.chosen_ns / self.best_ns - 1.0
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckReport {
    /// The penalty of each measured query, in query order.
    pub penalties: Vec<Penalty>,
    /// The number of queries that were not measured: the time was over, the check was stopped, or
    /// the choice could not be measured.
    pub unmeasured_count: usize,
}

impl CheckReport {
    /// Returns the share of the measured queries whose penalty is at most `limit`:
    /// `share_within(0.1)` for those within 10 %. Returns 1 if nothing was measured.
    #[must_use]
    pub fn share_within(&self, limit: f64) -> f64 {
        if self.penalties.is_empty() {
            return 1.0;
        }
        let within = self.penalties.iter().filter(|penalty| penalty.share() <= limit).count();
        within as f64 / self.penalties.len() as f64
    }

    /// Returns the largest penalty.
    #[must_use]
    pub fn worst(&self) -> Option<&Penalty> {
        self.penalties.iter().max_by(|a, b| a.share().total_cmp(&b.share()))
    }
}

/// The queries and the time of a check.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// The queries.
    pub workload: &'a Workload,
    /// The number of queries to check, evenly spread; `None` for all.
    pub sample_count: Option<usize>,
    /// The time for the whole check.
    pub budget: Duration,
    /// The number of usable cores.
    pub cores: usize,
    /// Ends the check soon after it is set.
    pub stop: &'a AtomicBool,
}

impl Check<'_> {
    /// Checks each query: measures all its candidates in turn, and then the choice of `wisdom` (or
    /// of the model, without wisdom) against the fastest of the others. Passes each penalty to
    /// `watch`.
    ///
    /// # Errors
    /// If measuring fails as a whole.
    pub fn run<W: Workbench<Error: 'static>>(
        &self,
        bench: &mut W,
        wisdom: Option<&Wisdom>,
        mut watch: impl FnMut(&Penalty),
    ) -> Result<CheckReport, SearchError<W::Error>> {
        bench.end_within(Some(self.budget));
        let report = self.run_within(bench, wisdom, &mut watch);
        bench.end_within(None);
        report
    }

    fn run_within<W: Workbench<Error: 'static>>(
        &self,
        bench: &mut W,
        wisdom: Option<&Wisdom>,
        watch: &mut impl FnMut(&Penalty),
    ) -> Result<CheckReport, SearchError<W::Error>> {
        let started = bench.now();
        // A query that no candidate can serve here has no choice.
        let is_served = |query: &Query| !bench.candidates(query).is_empty();
        let queries = self.workload.queries().filter(is_served).collect();
        let queries = sampled(queries, self.sample_count);
        let mut report = CheckReport::default();
        for (index, query) in queries.iter().enumerate() {
            let elapsed = bench.now().saturating_sub(started);
            let left_count = queries.len() - index;
            let selector = Selector::new(&*bench, Measurements::new(wisdom, self.cores));
            let chosen = selector.select(&CallSpec::from(query));
            let chosen = chosen.map(|chosen| chosen.candidate.into_owned());
            // Only the first of equivalent candidates is measured, so the choice comes first.
            let mut candidates = bench.candidates(query);
            candidates.sort_by_key(|candidate| chosen.as_ref() != Some(candidate));
            let field: Vec<Candidate> = distinct(bench, query, candidates).collect();
            let share =
                self.budget.saturating_sub(elapsed) / u32::try_from(left_count).unwrap_or(u32::MAX);
            let slice = slice(field.len(), share, Duration::MAX);
            // Relaxed: the flag publishes no other data.
            if self.stop.load(Ordering::Relaxed) || elapsed + slice > self.budget {
                report.unmeasured_count += left_count;
                break;
            }
            let failed = |source| SearchError { query: *query, source };
            let duel_slice = slice / DUEL_SHARE;
            let mut race = Race::new(field);
            race.run(bench, query, FIRST_LAUNCHES, slice - duel_slice).map_err(failed)?;
            let ranking = race.ranking();
            let is_over = |bench: &W| bench.now().saturating_sub(started) >= self.budget;
            if ranking.len() < race.field().len() && is_over(bench) {
                report.unmeasured_count += left_count;
                break;
            }
            let is_chosen =
                |(candidate, _): &&(Candidate, Sample)| chosen.as_ref() == Some(candidate);
            let Some(found) = ranking.iter().find(is_chosen) else {
                report.unmeasured_count += 1;
                continue;
            };
            let penalty = if let Some(rival) = ranking.iter().find(|one| !is_chosen(one)) {
                let mut duel = Race::new(vec![found.0.clone(), rival.0.clone()]);
                duel.run(bench, query, DUEL_LAUNCHES, duel_slice).map_err(failed)?;
                // A duel cut short by the end of the time is worth less than the race.
                let duel = if duel.ranking().len() < 2 { ranking.clone() } else { duel.ranking() };
                let found = duel.iter().find(is_chosen).unwrap_or(found);
                Penalty::of(query, found, duel.first().unwrap_or(&ranking[0]))
            } else {
                Penalty::of(query, found, found)
            };
            watch(&penalty);
            report.penalties.push(penalty);
        }
        Ok(report)
    }
}

/// Returns `count` of `queries`, evenly spread, or all of them if there are fewer.
fn sampled(queries: Vec<Query>, count: Option<usize>) -> Vec<Query> {
    match count {
        Some(count) if count < queries.len() => {
            (0..count).map(|index| queries[index * queries.len() / count]).collect()
        }
        _ => queries,
    }
}
