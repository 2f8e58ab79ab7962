//! What the choices lose against the best, measured anew: the penalty, not only the gain.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use consort_fabric::{Candidate, Query};

use crate::{
    Grid, Rigour, SearchError, Wisdom, Workbench, choose_or_estimate,
    search::contest::{ranking, slice},
};

/// What the choice for a query loses.
#[derive(Clone, Debug, PartialEq)]
pub struct Penalty {
    /// What was asked.
    pub query: Query,
    /// What wisdom, or else the model, chooses.
    pub chosen: Candidate,
    /// Its median in nanoseconds a call.
    pub chosen_ns: f64,
    /// What was the fastest now.
    pub best: Candidate,
    /// Its median in nanoseconds a call.
    pub best_ns: f64,
    /// Whether the confidence intervals of both overlap.
    pub within_noise: bool,
}

impl Penalty {
    /// By how much the choice is slower than the best: 0.05 for 5 %, 0 for the best itself.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.chosen_ns / self.best_ns - 1.0
    }
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// A penalty for each query measured, in the order of the grid.
    pub penalties: Vec<Penalty>,
    /// Queries that were to be measured and were not: the time was over, the check was stopped,
    /// or the choice could not be measured.
    pub unmeasured_count: usize,
}

impl Report {
    /// The share of the queries measured whose penalty is at most `limit`: `share_within(0.1)`
    /// for those within 10 %. 1 if nothing was measured.
    #[must_use]
    pub fn share_within(&self, limit: f64) -> f64 {
        if self.penalties.is_empty() {
            return 1.0;
        }
        let within = self.penalties.iter().filter(|penalty| penalty.share() <= limit).count();
        within as f64 / self.penalties.len() as f64
    }

    /// The largest penalty.
    #[must_use]
    pub fn worst(&self) -> Option<&Penalty> {
        self.penalties.iter().max_by(|a, b| a.share().total_cmp(&b.share()))
    }
}

/// What to check, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// The queries.
    pub grid: &'a Grid,
    /// How many of them, evenly spread; `None` for all.
    pub sample_count: Option<usize>,
    /// Time for everything.
    pub budget: Duration,
    /// Usable cores.
    pub cores: u32,
    /// Ends the check soon after it is set.
    pub stop: &'a AtomicBool,
}

impl Check<'_> {
    /// Measures, at each query, all candidates interleaved in one run, and compares what
    /// `wisdom` (or, without it, the model) chooses with the fastest. `watch` is told of each.
    ///
    /// # Errors
    /// If measuring fails as a whole.
    pub fn run<W: Workbench<Error: 'static>>(
        &self,
        bench: &mut W,
        wisdom: Option<&Wisdom>,
        mut watch: impl FnMut(&Penalty),
    ) -> Result<Report, SearchError<W::Error>> {
        let started = bench.now();
        let queries = sampled(self.grid.points(), self.sample_count);
        let mut report = Report::default();
        for (index, query) in queries.iter().enumerate() {
            let elapsed = bench.now().saturating_sub(started);
            let left_count = queries.len() - index;
            let field = bench.candidates(query);
            let share =
                self.budget.saturating_sub(elapsed) / u32::try_from(left_count).unwrap_or(u32::MAX);
            let slice = slice(Rigour::Exhaustive, field.len(), share);
            // Relaxed: the flag carries nothing but itself.
            if self.stop.load(Ordering::Relaxed) || elapsed + slice > self.budget {
                report.unmeasured_count += left_count;
                break;
            }
            let choice = choose_or_estimate(wisdom, &*bench, query, self.cores);
            let ranking = ranking(bench, query, &field, slice)
                .map_err(|source| SearchError { query: *query, source })?;
            let chosen = choice.and_then(|choice| {
                ranking.iter().find(|(candidate, _)| *candidate == choice.entry.choice)
            });
            let (Some((chosen, chosen_sample)), Some((best, best_sample))) =
                (chosen, ranking.first())
            else {
                report.unmeasured_count += 1;
                continue;
            };
            let penalty = Penalty {
                query: *query,
                chosen: chosen.clone(),
                chosen_ns: chosen_sample.median_ns,
                best: best.clone(),
                best_ns: best_sample.median_ns,
                within_noise: chosen_sample.ci95_ns.0 <= best_sample.ci95_ns.1,
            };
            watch(&penalty);
            report.penalties.push(penalty);
        }
        Ok(report)
    }
}

/// `count` of `queries`, evenly spread; all if there are no more.
fn sampled(queries: Vec<Query>, count: Option<usize>) -> Vec<Query> {
    match count {
        Some(count) if count < queries.len() => {
            (0..count).map(|index| queries[index * queries.len() / count]).collect()
        }
        _ => queries,
    }
}
