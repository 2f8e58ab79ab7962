//! The search: fills wisdom for a grid of queries, within a budget.
//!
//! 1. Every query of the grid without an entry gets the model's estimate. From then on the result
//!    is complete, and every later step only improves it.
//! 2. The grid is measured in its order, the most useful queries first, in three quarters of the
//!    time.
//! 3. Where the winner changes between neighbouring sizes, the size between them is measured too,
//!    the largest margin first, until the change is located or the time is over.
//!
//! The search keeps existing entries that were won at the same or a higher rigour. So it can be
//! stopped at any time, and continues when it is run again.

pub(crate) mod contest;
mod progress;

use std::{
    collections::BTreeSet,
    error::Error,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use consort_fabric::{Candidate, Query};

pub use progress::{Ending, Observer, Outcome, Progress};

use crate::{
    Entry, Grid, Rigour, Wisdom, Workbench,
    estimate::estimated,
    query::{describe, row_of},
    row::crossovers,
};

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
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The grid of queries.
    pub grid: &'a Grid,
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
        let points = self.grid.points();
        let started = bench.now();
        let mut run = Run {
            search: self,
            rows: points.iter().map(row_of).collect(),
            visited: BTreeSet::new(),
            total_count: 0,
            measured_count: 0,
            kept_count: 0,
            started,
            bench,
            wisdom,
            observer,
        };
        let (ending, refined_count) = run.everything(&points)?;
        Ok(Outcome {
            ending,
            measured_count: run.measured_count,
            refined_count,
            kept_count: run.kept_count,
            elapsed: run.elapsed(),
            estimated_count: points
                .iter()
                .filter(|query| !wisdom.entry(query).is_some_and(Entry::is_measured))
                .count(),
        })
    }
}

/// A search in progress.
struct Run<'a, W, O> {
    search: &'a Search<'a>,
    /// The rows of the grid.
    rows: BTreeSet<Query>,
    /// The queries visited in this run, measured or not.
    visited: BTreeSet<Query>,
    total_count: usize,
    measured_count: usize,
    kept_count: usize,
    started: Duration,
    bench: &'a mut W,
    wisdom: &'a mut Wisdom,
    observer: &'a mut O,
}

impl<W: Workbench<Error: 'static>, O: Observer> Run<'_, W, O> {
    /// Runs all steps. Returns the reason why it ended, and how many queries the refinement
    /// measured.
    fn everything(&mut self, points: &[Query]) -> Result<(Ending, usize), SearchError<W::Error>> {
        for query in points {
            self.estimate(query);
        }
        let mut work = points.to_vec();
        let known: BTreeSet<Query> = points.iter().copied().collect();
        let earlier_refinements = self.wisdom.entries().map(|entry| entry.query);
        work.extend(
            earlier_refinements
                .filter(|query| !known.contains(query) && self.rows.contains(&row_of(query))),
        );
        self.total_count = work.len();
        let three_quarters = self.search.budget / 4 * 3;
        if let Some(ending) = self.visit(&work, three_quarters, 1)? {
            return Ok((ending, 0));
        }
        let before_count = self.measured_count;
        let ending = self.refine()?;
        Ok((ending, self.measured_count - before_count))
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

    /// Visits each query of `work`. They share the time until `deadline` after the start, each with
    /// one in `shares_each` equal shares, but none goes beyond the budget. Returns the reason why
    /// the search must end, if it must.
    fn visit(
        &mut self,
        work: &[Query],
        deadline: Duration,
        shares_each: u32,
    ) -> Result<Option<Ending>, SearchError<W::Error>> {
        let Search { rigour, budget, stop, .. } = *self.search;
        let (kept, open): (Vec<Query>, Vec<Query>) =
            work.iter().partition(|query| self.keeps(query));
        self.kept_count += kept.len();
        self.visited.extend(kept);
        for (index, query) in open.iter().enumerate() {
            // Relaxed: the flag publishes no other data.
            if stop.load(Ordering::Relaxed) {
                return Ok(Some(Ending::Stopped));
            }
            let field = contest::field(self.bench, query, rigour);
            let left = deadline.saturating_sub(self.elapsed());
            let left_count = u32::try_from(open.len() - index).unwrap_or(u32::MAX);
            let share = left / left_count.saturating_mul(shares_each);
            let slice = contest::slice(rigour, field.len(), share);
            if self.elapsed() + slice > budget {
                return Ok(Some(Ending::OutOfBudget));
            }
            if !field.is_empty() {
                self.contest(query, field, slice)?;
            }
            self.visited.insert(*query);
        }
        Ok(None)
    }

    /// Measures `field` at `query` and keeps the winner.
    fn contest(
        &mut self,
        query: &Query,
        field: Vec<Candidate>,
        slice: Duration,
    ) -> Result<(), SearchError<W::Error>> {
        let progress = self.progress();
        let observer = &mut *self.observer;
        let announce = |candidates: &[Candidate]| observer.measuring(&progress, query, candidates);
        let entry = contest::hold(self.bench, query, field, self.search.rigour, slice, announce)
            .map_err(|source| SearchError { query: *query, source })?;
        if let Some(entry) = entry {
            self.measured_count += 1;
            self.wisdom.insert(entry.clone());
            self.observer.won(&self.progress(), &entry, self.wisdom);
        }
        Ok(())
    }

    /// Measures sizes between neighbours with different winners until no such size is left.
    fn refine(&mut self) -> Result<Ending, SearchError<W::Error>> {
        let Search { rigour, budget, .. } = *self.search;
        loop {
            let in_grid = |entry: &Entry| self.rows.contains(&row_of(&entry.query));
            let accepts = |entry: &Entry| entry.rigour >= rigour && in_grid(entry);
            let work: Vec<Query> = crossovers(self.wisdom, accepts)
                .into_iter()
                .filter(|query| !self.visited.contains(query))
                .collect();
            if work.is_empty() {
                return Ok(Ending::Complete);
            }
            self.total_count += work.len();
            if rigour == Rigour::Estimate {
                work.iter().for_each(|query| self.estimate(query));
            }
            // The crossovers found now lead to about as many again, half as far apart.
            if let Some(ending) = self.visit(&work, budget, 2)? {
                return Ok(ending);
            }
        }
    }

    fn elapsed(&self) -> Duration {
        self.bench.now().saturating_sub(self.started)
    }

    fn progress(&self) -> Progress {
        Progress {
            done_count: self.visited.len(),
            total_count: self.total_count,
            elapsed: self.elapsed(),
        }
    }
}
