//! The search: fills wisdom for a workload, within a budget.
//!
//! 1. Every query without an entry gets the model's estimate. From then on the result is complete,
//!    and every later step only improves it.
//! 2. Each query has a contest, in the order of the workload, the most useful queries first, as
//!    far as the time allows. A query's time is in proportion to its weight.
//! 3. All contests go on together, a launch of each after the other, until the time is over. So the
//!    launches of a query are spread over the whole search, and see how the machine changes.
//!    Barriers alone decide their heats first, since calls of other queries contain them.
//! 4. Halfway and after three quarters, where the winner of a grid changes between neighbouring
//!    sizes, the size between them gets a contest too, which catches up with the others.
//!
//! The search keeps existing entries that were won at the same or a higher rigour. So it can be
//! stopped at any time, and continues when it is run again. A query is kept that has had as many
//! launches as a heat.

pub(crate) mod contest;
mod progress;

use std::{
    collections::BTreeSet,
    error::Error,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use consort_fabric::{Collective, Query};

pub use progress::{Ending, Observer, Outcome, Progress};

use crate::{
    Entry, Rigour, Wisdom, Workbench, Workload,
    estimate::{estimated, same},
    query::{describe, row_of},
    row::crossovers,
};
use contest::Contest;

/// The share of the time, in quarters, that the workload itself may ask for if it is a grid: sizes
/// between its own have the rest.
const GRID_QUARTERS: u32 = 3;
/// How far contests have come when sizes between neighbours are looked for.
const REFINED_AT: [f64; 2] = [0.5, 0.75];

/// Measuring failed as a whole. Wisdom has all entries that were won before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("measuring failed at {}", describe(query))]
pub struct SearchError<E: Error + 'static> {
    /// The query that was being measured.
    pub query: Query,
    /// The reason.
    pub source: E,
}

/// The queries, the rigour and the time of a search.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    /// The queries.
    pub workload: Workload,
    /// How hard to search.
    pub rigour: Rigour,
    /// The time for the whole search.
    pub budget: Duration,
    /// Whether to measure again queries whose entries would be kept.
    pub retune: bool,
    /// Ends the search soon after it is set.
    pub stop: &'a AtomicBool,
}

impl Search<'_> {
    /// Searches with `bench` and writes into `wisdom`.
    ///
    /// # Errors
    /// When measuring fails as a whole.
    pub fn run<W: Workbench<Error: 'static>, O: Observer>(
        &self,
        bench: &mut W,
        wisdom: &mut Wisdom,
        observer: &mut O,
    ) -> Result<Outcome, SearchError<W::Error>> {
        let started = bench.now();
        let mut run = Run {
            search: self,
            rows: self.workload.queries().map(|query| row_of(&query)).collect(),
            visited: BTreeSet::new(),
            contests: Vec::new(),
            committed: Duration::ZERO,
            settled_count: 0,
            waiting_count: 0,
            kept_count: 0,
            started,
            bench,
            wisdom,
            observer,
        };
        let outcome = run.everything();
        // Also after a failure: what was won before it is kept.
        run.conclude();
        let (ending, grid_count) = outcome?;
        let is_cut_off = |contest: &Contest| !contest.is_measured() && contest.progress() < 1.0;
        let is_complete = !run.contests.iter().any(is_cut_off) && run.crossovers().is_empty();
        let measured =
            |contests: &[Contest]| contests.iter().filter(|one| one.is_measured()).count();
        Ok(Outcome {
            ending: match ending {
                Some(ending) => ending,
                None if is_complete => Ending::Complete,
                None => Ending::OutOfBudget,
            },
            measured_count: measured(&run.contests),
            refined_count: measured(&run.contests[grid_count..]),
            kept_count: run.kept_count,
            elapsed: run.elapsed(),
            estimated_count: self
                .workload
                .queries()
                .filter(|query| !run.wisdom.entry(query).is_some_and(Entry::is_measured))
                .count(),
        })
    }
}

/// A search in progress.
struct Run<'a, W, O> {
    search: &'a Search<'a>,
    /// The rows of the workload.
    rows: BTreeSet<Query>,
    /// The queries visited in this run, measured or not.
    visited: BTreeSet<Query>,
    /// The queries that are measured in this run.
    contests: Vec<Contest>,
    /// The time that all contests ask for.
    committed: Duration,
    /// Queries that are kept or cannot be measured.
    settled_count: usize,
    /// Queries that may yet get a contest.
    waiting_count: usize,
    kept_count: usize,
    started: Duration,
    bench: &'a mut W,
    wisdom: &'a mut Wisdom,
    observer: &'a mut O,
}

type Step<E, T = Option<Ending>> = Result<T, SearchError<E>>;

impl<W: Workbench<Error: 'static>, O: Observer> Run<'_, W, O> {
    /// Runs all steps. Returns the reason why it ended early, and how many contests are not of
    /// sizes between others.
    fn everything(&mut self) -> Step<W::Error, (Option<Ending>, usize)> {
        let Search { ref workload, rigour, budget, .. } = *self.search;
        for query in workload.queries() {
            self.estimate(&query);
        }
        let mut work = workload.points().to_vec();
        if workload.refines() {
            let known: BTreeSet<Query> = workload.queries().collect();
            let earlier_refinements = self.wisdom.entries().map(|entry| entry.query);
            let is_one =
                |query: &Query| !known.contains(query) && self.rows.contains(&row_of(query));
            work.extend(earlier_refinements.filter(is_one).map(|query| (query, 1.0)));
        }
        let limit = if workload.refines() { budget / 4 * GRID_QUARTERS } else { budget };
        let mut ending = self.admit(&work, limit, 1.0)?;
        let grid_count = self.contests.len();
        for target in REFINED_AT {
            while ending.is_none() {
                ending = self.advance(target)?;
                self.conclude();
                let work: Vec<(Query, f64)> =
                    self.crossovers().into_iter().map(|query| (query, 1.0)).collect();
                if work.is_empty() || ending.is_some() {
                    break;
                }
                if rigour == Rigour::Estimate {
                    work.iter().for_each(|(query, _)| self.estimate(query));
                }
                // They lead to about as many again, half as far apart.
                ending = self.admit(&work, budget, 2.0)?;
            }
        }
        if ending != Some(Ending::Stopped) {
            ending = self.advance(1.0)?.or(ending);
        }
        // Time that is left is for launches that it did not seem to suffice for.
        while ending != Some(Ending::Stopped) {
            let left = self.search.budget.saturating_sub(self.elapsed());
            let count = u32::try_from(self.contests.len()).unwrap_or(u32::MAX).max(1);
            let fair = 4 * left / count;
            let mut few =
                self.contests.iter_mut().filter(|contest| contest.goes_on(fair)).peekable();
            if few.peek().is_none() {
                break;
            }
            few.for_each(Contest::extend);
            ending = self.advance(1.0)?.or(ending);
        }
        Ok((ending, grid_count))
    }

    /// Inserts the model's estimate for a query that has no measurement, if the model has one.
    fn estimate(&mut self, query: &Query) {
        if !self.wisdom.entry(query).is_some_and(Entry::is_measured)
            && let Some(entry) = estimated(&*self.bench, query, |_| true)
        {
            self.wisdom.insert(entry);
        }
    }

    /// Whether the entry for `query` is kept.
    fn keeps(&self, query: &Query) -> bool {
        let Search { rigour, retune, .. } = *self.search;
        let is_enough = |own: &Entry| own.rigour >= rigour && !retune;
        rigour == Rigour::Estimate || self.wisdom.entry(query).is_some_and(is_enough)
    }

    /// Begins a contest for each query of `work` with the first launch, as long as all contests ask
    /// for no more than `limit` of the time. Each gets a part of what is left by its weight, or one
    /// in `shares` equal parts of that. Returns the reason why the rest of `work` gets none.
    fn admit(&mut self, work: &[(Query, f64)], limit: Duration, shares: f64) -> Step<W::Error> {
        let Search { rigour, ref workload, .. } = *self.search;
        self.visited.extend(work.iter().map(|(query, _)| *query));
        let (kept, open): (Vec<_>, Vec<_>) =
            work.iter().copied().partition(|(query, _)| self.keeps(query));
        self.kept_count += kept.len();
        self.settled_count += kept.len();
        self.waiting_count = open.len();
        let mut weight_ahead: f64 = open.iter().map(|(_, weight)| weight).sum();
        // By weights that a program has, all time is of use.
        let cap =
            |size| if workload.refines() { contest::cap(rigour, size) } else { Duration::MAX };
        let mut ending = None;
        for (query, weight) in open {
            self.waiting_count -= 1;
            let part = (weight / weight_ahead / shares).clamp(0.0, 1.0);
            weight_ahead -= weight;
            let field = contest::field(self.bench, &query, rigour);
            if field.is_empty() {
                self.settled_count += 1;
                continue;
            }
            let left = limit.saturating_sub(self.committed);
            let least = contest::LEAST_SLICE;
            let waiting_count = u32::try_from(self.waiting_count).unwrap_or(u32::MAX);
            let spare = left.saturating_sub(least.saturating_mul(waiting_count.saturating_add(1)));
            let share = least + spare.mul_f64(part);
            let slice = contest::slice(field.len(), share, cap(field.len()));
            if self.committed + slice > limit {
                ending = Some(Ending::OutOfBudget);
                break;
            }
            self.contests.push(Contest::new(query, field, rigour, slice));
            let index = self.contests.len() - 1;
            let first = self.contests[index].next_slice();
            ending = self.launch(index, first)?;
            // The first launch tells the time besides its blocks, if nothing has interrupted it.
            self.committed += self.contests[index].time_needed().min(slice.max(limit / 16));
            while ending.is_none()
                && query.collective == Collective::Barrier
                && self.contests[index].is_open()
            {
                ending = self.launch(index, self.contests[index].next_slice())?;
            }
            if ending.is_some() {
                break;
            }
        }
        self.waiting_count = 0;
        Ok(ending)
    }

    /// Has all contests go on until each has come as far as `target`, a share of its launches. What
    /// time there is is divided as they ask for it.
    fn advance(&mut self, target: f64) -> Step<W::Error> {
        loop {
            let progress = |index: &usize| self.contests[*index].progress();
            let is_behind = |index: &usize| {
                !self.contests[*index].is_over && self.contests[*index].progress() < target
            };
            let behind = (0..self.contests.len()).filter(is_behind);
            let Some(index) = behind.min_by(|a, b| progress(a).total_cmp(&progress(b))) else {
                return Ok(None);
            };
            let going_on = self.contests.iter().filter(|contest| !contest.is_over);
            let ahead: Duration = going_on.map(Contest::time_ahead).sum();
            let left = self.search.budget.saturating_sub(self.elapsed());
            let next = self.contests[index].next_slice();
            let part = next.as_secs_f64() / ahead.as_secs_f64();
            // Where launches are few, further ones are of more use than longer ones.
            let has_few = self.contests.iter().any(|one| one.has_few() && !one.is_over);
            let share = if has_few { next } else { left.mul_f64(part.clamp(0.0, 1.0)) };
            if self.launch(index, share)? == Some(Ending::Stopped) {
                return Ok(Some(Ending::Stopped));
            }
        }
    }

    /// Measures the next launch of a contest, for about `share`. Returns the reason why there is
    /// none: the search is stopped, or the launch would not end in time.
    fn launch(&mut self, index: usize, share: Duration) -> Step<W::Error> {
        let Search { budget, stop, .. } = *self.search;
        // Relaxed: the flag publishes no other data.
        if stop.load(Ordering::Relaxed) {
            return Ok(Some(Ending::Stopped));
        }
        let progress = self.progress();
        let contest = &mut self.contests[index];
        let left = budget.saturating_sub(progress.elapsed);
        if left.is_zero() || !contest.fits(share, left) {
            contest.is_over = true;
            return Ok(Some(Ending::OutOfBudget));
        }
        self.observer.measuring(&progress, &contest.query, contest.field());
        let query = contest.query;
        if contest.launch(self.bench, share).map_err(|source| SearchError { query, source })? {
            self.keep(index);
        }
        Ok(None)
    }

    /// Keeps what a contest has won since it was last asked.
    fn keep(&mut self, index: usize) {
        if let Some(entry) = self.contests[index].judge() {
            self.wisdom.insert(entry.clone());
            self.observer.won(&self.progress(), &entry, self.wisdom);
        }
    }

    /// Keeps what all contests have won.
    fn conclude(&mut self) {
        (0..self.contests.len()).for_each(|index| self.keep(index));
    }

    /// The sizes between neighbours with different winners that were not visited.
    fn crossovers(&self) -> Vec<Query> {
        let Search { rigour, ref workload, .. } = *self.search;
        if !workload.refines() {
            return Vec::new();
        }
        let in_grid = |entry: &Entry| self.rows.contains(&row_of(&entry.query));
        let accepts = |entry: &Entry| entry.rigour >= rigour && in_grid(entry);
        let is_change = |low: &Entry, high: &Entry| {
            let at = |query: &Query| same(&*self.bench, query, &low.choice, &high.choice);
            !(at(&low.query) && at(&high.query))
        };
        let mut found = crossovers(self.wisdom, accepts, is_change);
        found.retain(|query| !self.visited.contains(query));
        found
    }

    fn elapsed(&self) -> Duration {
        self.bench.now().saturating_sub(self.started)
    }

    fn progress(&self) -> Progress {
        let of_contests: usize = self.contests.iter().map(Contest::per_mille).sum();
        Progress {
            done_count: self.settled_count + of_contests / 1000,
            total_count: self.settled_count + self.contests.len() + self.waiting_count,
            elapsed: self.elapsed(),
        }
    }
}
