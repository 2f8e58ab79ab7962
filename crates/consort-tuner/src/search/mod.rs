//! The search: fills wisdom for a workload, within a budget.
//!
//! 1. Every query without an entry gets the model's estimate. From then on the result is complete,
//!    and every later step only improves it.
//! 2. Heats find the finalists of each query in workload order, the most useful queries first, in
//!    three eighths of the time. A query's time is proportional to its weight.
//! 3. If the winner of a grid changes between neighbouring sizes, the size between them has heats
//!    too, the largest margin first, until the change is located or half of the time is over.
//! 4. The finals of all queries are measured in turn, one launch of each, several times. So the
//!    launches of a query see how the machine changes during the search.
//!
//! The search keeps existing entries that were won at the same or a higher rigour. So it can be
//! stopped at any time, and continues when it runs again. The result of a heat counts as well.

pub(crate) mod contest;
mod progress;

use std::{
    collections::BTreeSet,
    error::Error,
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use consort_fabric::{Candidate, Query};

pub use progress::{Observer, Outcome, Progress, StopReason};

use crate::{
    Entry, Race, Rigour, Wisdom, Workbench, Workload,
    estimate::{estimated, same},
    query::{describe, row_of},
    row::crossovers,
    workload::shares_ahead,
};

/// The number of launches of a final: some more than make a difference clear, because the cores may
/// be near in one launch and far in another.
const FINAL_LAUNCHES: u32 = 10;

/// Measuring failed as a whole. Wisdom contains all entries won before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchError<E: Error + 'static> {
    /// The query that was being measured.
    pub query: Query,
    /// The reason.
    pub source: E,
}

impl<E: Error + 'static> fmt::Display for SearchError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "measuring failed at {}", describe(&self.query))
    }
}

impl<E: Error + 'static> Error for SearchError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
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
    /// Whether to measure again queries whose entries would be kept. If the workload is not a grid,
    /// entries of a higher rigour are still kept.
    pub retune: bool,
    /// Ends the search soon after it is set.
    pub stop: &'a AtomicBool,
}

impl Search<'_> {
    /// Searches with `bench` and writes into `wisdom`.
    ///
    /// # Errors
    /// If measuring fails as a whole.
    pub fn run<W: Workbench<Error: 'static>, O: Observer>(
        &self,
        bench: &mut W,
        wisdom: &mut Wisdom,
        observer: &mut O,
    ) -> Result<Outcome, SearchError<W::Error>> {
        let started = bench.now();
        let mut run = SearchRun {
            search: self,
            rows: self.workload.queries().map(|query| row_of(&query)).collect(),
            visited: BTreeSet::new(),
            total_count: 0,
            measured_count: 0,
            kept_count: 0,
            finals: Vec::new(),
            launched: 0,
            settled_count: 0,
            started,
            bench,
            wisdom,
            observer,
        };
        let (ending, refined_count) = run.everything()?;
        Ok(Outcome {
            ending,
            measured_count: run.measured_count,
            refined_count,
            kept_count: run.kept_count,
            elapsed: run.elapsed(),
            estimated_count: self
                .workload
                .queries()
                .filter(|query| !wisdom.entry(query).is_some_and(Entry::is_measured))
                .count(),
        })
    }
}

struct FinalRace {
    query: Query,
    race: Race,
    /// The longest time for a launch.
    most: Duration,
    /// The duration of its last launch.
    taken: Duration,
}

struct SearchRun<'a, W, O> {
    search: &'a Search<'a>,
    /// The rows of the workload.
    rows: BTreeSet<Query>,
    /// The queries visited in this run, measured or not.
    visited: BTreeSet<Query>,
    total_count: usize,
    measured_count: usize,
    kept_count: usize,
    finals: Vec<FinalRace>,
    /// The number of completed launches of finals.
    launched: usize,
    /// The number of queries that are kept or whose finals are over.
    settled_count: usize,
    started: Duration,
    bench: &'a mut W,
    wisdom: &'a mut Wisdom,
    observer: &'a mut O,
}

impl<W: Workbench<Error: 'static>, O: Observer> SearchRun<'_, W, O> {
    /// Runs all steps. Returns the reason for the end, and how many queries the refinement
    /// measured.
    fn everything(&mut self) -> Result<(StopReason, usize), SearchError<W::Error>> {
        let workload = &self.search.workload;
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
        self.total_count = work.len();
        let mut ending = self.heats(&work, self.search.budget / 8 * 3, 1.0)?;
        let before_count = self.measured_count;
        // Finals may change winners, which gives further sizes to measure.
        loop {
            if ending.is_none() {
                ending = self.refine()?;
            }
            if self.finals.is_empty() || ending == Some(StopReason::Stopped) {
                break;
            }
            let ended = self.run_finals();
            self.conclude();
            ending = ended?.or(ending);
        }
        Ok((ending.unwrap_or(StopReason::Complete), self.measured_count - before_count))
    }

    /// Inserts the model's estimate, if there is one, for a query that has no measurement.
    fn estimate(&mut self, query: &Query) {
        if !self.wisdom.entry(query).is_some_and(Entry::is_measured)
            && let Some(entry) = estimated(&*self.bench, query, |_| true)
        {
            self.wisdom.insert(entry);
        }
    }

    fn keeps(&self, query: &Query) -> bool {
        let Search { rigour, retune, ref workload, .. } = *self.search;
        let is_enough = |own: &Entry| {
            if retune { own.rigour > rigour && !workload.refines() } else { own.rigour >= rigour }
        };
        rigour == Rigour::Estimate || self.wisdom.entry(query).is_some_and(is_enough)
    }

    /// Holds the heats of each query of `work`. They share the time until `deadline` after the
    /// start by their weights, or one of `shares` equal parts of it. A query's heats begin only if
    /// its final fits into the budget too. Returns the reason why the search must end, if it must.
    fn heats(
        &mut self,
        work: &[(Query, f64)],
        deadline: Duration,
        shares: f64,
    ) -> Result<Option<StopReason>, SearchError<W::Error>> {
        let Search { rigour, budget, stop, ref workload, .. } = *self.search;
        let (kept, open): (Vec<_>, Vec<_>) =
            work.iter().copied().partition(|(query, _)| self.keeps(query));
        let is_measured =
            |(query, _): &&(Query, f64)| self.wisdom.entry(query).is_some_and(Entry::is_measured);
        self.kept_count += kept.iter().filter(is_measured).count();
        self.settled_count += kept.len();
        self.visited.extend(kept.iter().map(|(query, _)| *query));
        let weights: Vec<f64> = open.iter().map(|(_, weight)| *weight).collect();
        // A final gets as much time as the heats before it might have taken.
        let mut of_finals = self.time_of_finals();
        let end = deadline.saturating_sub(self.elapsed()) + of_finals;
        for ((query, _), part) in open.iter().zip(shares_ahead(&weights)) {
            // Relaxed: the flag publishes no other data.
            if stop.load(Ordering::Relaxed) {
                return Ok(Some(StopReason::Stopped));
            }
            let field = contest::field(self.bench, query, rigour);
            let left = deadline.saturating_sub(self.elapsed()).min(end.saturating_sub(of_finals));
            let share = left.mul_f64((part / shares).clamp(0.0, 1.0));
            // With a program's own weights, all time is useful.
            let cap =
                if workload.refines() { contest::cap(rigour, field.len()) } else { 2 * share };
            let slice = contest::slice(field.len(), 2 * share, cap) / 2;
            if self.elapsed() + of_finals + 2 * slice > budget {
                return Ok(Some(StopReason::OutOfBudget));
            }
            of_finals += slice;
            let progress = self.progress();
            self.visited.insert(*query);
            if field.is_empty() {
                continue;
            }
            let observer = &mut *self.observer;
            let announce =
                |candidates: &[Candidate]| observer.measuring(&progress, query, candidates);
            let (race, entry) = contest::heats(self.bench, query, field, rigour, slice, announce)
                .map_err(|source| SearchError { query: *query, source })?;
            if let Some(entry) = entry {
                self.measured_count += 1;
                self.wisdom.insert(entry.clone());
                self.observer.entry_measured(&self.progress(), &entry, self.wisdom);
            }
            if !race.field().is_empty() {
                let most = slice / FINAL_LAUNCHES;
                self.finals.push(FinalRace { query: *query, race, most, taken: Duration::ZERO });
            }
        }
        Ok(None)
    }

    /// Measures the finals in turn, one launch of each.
    fn run_finals(&mut self) -> Result<Option<StopReason>, SearchError<W::Error>> {
        let Search { budget, stop, .. } = *self.search;
        let count = self.finals.len();
        for launch in 0..count * FINAL_LAUNCHES as usize {
            if stop.load(Ordering::Relaxed) {
                return Ok(Some(StopReason::Stopped));
            }
            let (progress, elapsed) = (self.progress(), self.elapsed());
            let FinalRace { query, race, most, taken } = &mut self.finals[launch % count];
            let left_count = u32::try_from(count * FINAL_LAUNCHES as usize - launch);
            let left = budget.saturating_sub(elapsed);
            let share = (left / left_count.unwrap_or(u32::MAX)).min(*most);
            if elapsed + share.max(*taken) > budget {
                return Ok(Some(StopReason::OutOfBudget));
            }
            self.observer.measuring(&progress, query, race.field());
            let blocks = self.bench.launch(query, race.field(), share);
            race.add(blocks.map_err(|source| SearchError { query: *query, source })?);
            *taken = self.bench.now().saturating_sub(self.started).saturating_sub(elapsed);
            self.launched = launch + 1;
        }
        Ok(None)
    }

    fn time_of_finals(&self) -> Duration {
        self.finals.iter().map(|last| last.most * FINAL_LAUNCHES).sum()
    }

    /// Keeps the winners of the finals, which are over. A final with fewer launches than a heat, or
    /// without a time for each finalist, is worth less than the heat before it.
    fn conclude(&mut self) {
        self.launched = 0;
        for FinalRace { query, race, .. } in std::mem::take(&mut self.finals) {
            self.settled_count += 1;
            if race.launches() < contest::HEAT_LAUNCHES as usize
                || race.ranking().len() < race.field().len()
            {
                continue;
            }
            if let Some(entry) = contest::won(&query, &race, self.search.rigour) {
                let entry = contest::after(self.wisdom.entry(&query), entry);
                self.wisdom.insert(entry.clone());
                self.observer.entry_measured(&self.progress(), &entry, self.wisdom);
            }
        }
    }

    /// Holds heats at sizes between neighbours with different winners until no such size is left.
    fn refine(&mut self) -> Result<Option<StopReason>, SearchError<W::Error>> {
        let Search { rigour, budget, ref workload, .. } = *self.search;
        while workload.refines() {
            let in_grid = |entry: &Entry| self.rows.contains(&row_of(&entry.query));
            let accepts = |entry: &Entry| entry.rigour >= rigour && in_grid(entry);
            let is_change = |low: &Entry, high: &Entry| {
                let at = |query: &Query| same(&*self.bench, query, &low.choice, &high.choice);
                !(at(&low.query) && at(&high.query))
            };
            let work: Vec<(Query, f64)> = crossovers(self.wisdom, accepts, is_change)
                .into_iter()
                .filter(|query| !self.visited.contains(query))
                .map(|query| (query, 1.0))
                .collect();
            if work.is_empty() {
                break;
            }
            self.total_count += work.len();
            if rigour == Rigour::Estimate {
                work.iter().for_each(|(query, _)| self.estimate(query));
            }
            // Heats and finals share the time. The crossovers found now lead to about the same
            // number again, half as far apart.
            let begun = self.elapsed();
            let left = budget.saturating_sub(begun).saturating_sub(self.time_of_finals());
            if let Some(ending) = self.heats(&work, begun + left / 2, 2.0)? {
                return Ok(Some(ending));
            }
        }
        Ok(None)
    }

    fn elapsed(&self) -> Duration {
        self.bench.now().saturating_sub(self.started)
    }

    /// Returns the progress. Heats are half of the work, and finals the other half.
    fn progress(&self) -> Progress {
        let in_finals = self.launched / FINAL_LAUNCHES as usize;
        Progress {
            done_count: (self.visited.len() + self.settled_count + in_finals) / 2,
            total_count: self.total_count,
            elapsed: self.elapsed(),
        }
    }
}
