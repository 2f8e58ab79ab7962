//! The search: fills wisdom for a workload, within a budget.
//!
//! 1. Every query without an entry gets the model's estimate. From then on the result is complete,
//!    and every later step only improves it.
//! 2. The queries are measured a group at a time, the most useful first, in three quarters of the
//!    time. Heats find the finalists of each query of a group; a query's time is proportional to
//!    its weight. Then the finals of the group are measured in turn, one launch of each, several
//!    times. So the launches of a query are spread over time, and see the machine in different
//!    states.
//! 3. If the winner of a grid changes between neighbouring sizes, the size between them is measured
//!    too, the largest margin first, until the change is located or the time is over.
//!
//! If other programs used the cores during a whole launch, the launch decides nothing. The search
//! then waits for the cores, for at most a quarter of the budget in total, and launches again.
//!
//! The incumbent is the candidate that has served the query's calls so far. A final replaces it
//! only if another candidate is clearly faster in the blocks of the final, and slower in no class of
//! the transfer: neither in those that the finals have seen, nor in that of the query's old entry.
//! So a candidate that was only measured near does not replace a choice that was won far. The new
//! entry has the class of the final. The search keeps existing entries that were won at the same or
//! a higher rigour. So it can be stopped at any time, and continues when it runs again.

pub(crate) mod contest;
mod crossovers;
mod progress;

use std::{
    collections::BTreeSet,
    error::Error,
    fmt,
    iter::once,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use consort_fabric::{CallSpec, Candidate, Query};

use crossovers::crossovers;
pub use progress::{Observer, Outcome, Progress, StopReason};

use crate::{
    Entry, Measurements, Race, Rigour, Selector, Wisdom, Workbench, Workload,
    estimate::{estimated, same},
    query::row_of,
    race::seen_classes,
    workload::shares_ahead,
};

/// The number of launches of a final: a few more than are needed to make a difference clear,
/// because the cores may be near in one launch and far in another.
const FINAL_LAUNCHES: u32 = 10;
/// The number of queries whose finals are measured in turn: several times the number of launches in
/// which the machine changes.
const GROUP: usize = 64;

/// Heats that take this many times as long as they should show a busy machine.
const LATE: f64 = 1.25;
/// The part of the budget, one in this many, that the search may wait for cores that others use.
const WAIT_SHARE: u32 = 4;
/// The longest wait between two looks at the stop flag.
const WAIT_STEP: Duration = Duration::from_millis(100);

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
        write!(f, "measuring failed at {}", self.query)
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
    /// The number of usable cores.
    pub cores: usize,
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
            waited: Duration::ZERO,
            started,
            bench,
            before: wisdom.clone(),
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
            waited: run.waited,
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
    /// The candidate that served the query's calls before the search.
    incumbent: Option<Candidate>,
    race: Race,
    /// The last heat, if its launches do not count in the final.
    heat: Option<Race>,
    /// The candidates that came near the best of a heat.
    near: Vec<Candidate>,
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
    /// How long the search has waited for the cores.
    waited: Duration,
    started: Duration,
    bench: &'a mut W,
    /// The wisdom before the search.
    before: Wisdom,
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
        let mut ending = self.tune(&work, self.search.budget / 4 * 3, 1.0)?;
        let before_count = self.measured_count;
        if ending.is_none() {
            ending = self.refine()?;
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
            if !own.is_decided() && rigour > Rigour::Estimate {
                false
            } else if retune {
                own.rigour > rigour && !workload.refines()
            } else {
                own.rigour >= rigour
            }
        };
        rigour == Rigour::Estimate || self.wisdom.entry(query).is_some_and(is_enough)
    }

    /// Returns the candidate that served the query's calls before the search: by its entry, by one of
    /// a similar query, or by the model.
    fn incumbent(&self, query: &Query) -> Option<Candidate> {
        let measured = Measurements::Wisdom(&self.before, self.search.cores);
        let selected = Selector::new(&*self.bench, measured).select(&CallSpec::from(query))?;
        Some(selected.candidate.into_owned())
    }

    /// Measures the queries of `work` that are not kept, a group at a time. They share the time until
    /// `deadline` after the start by their weights, or one of `shares` equal parts of it. Returns the
    /// reason why the search must end, if it must.
    fn tune(
        &mut self,
        work: &[(Query, f64)],
        deadline: Duration,
        shares: f64,
    ) -> Result<Option<StopReason>, SearchError<W::Error>> {
        let (kept, mut open): (Vec<_>, Vec<_>) =
            work.iter().copied().partition(|(query, _)| self.keeps(query));
        // So repeated searches decide all queries in the end, even on a busy machine.
        open.sort_by_key(|(query, _)| self.wisdom.entry(query).is_some_and(Entry::is_decided));
        let is_measured =
            |(query, _): &&(Query, f64)| self.wisdom.entry(query).is_some_and(Entry::is_measured);
        self.kept_count += kept.iter().filter(is_measured).count();
        self.settled_count += kept.len();
        self.visited.extend(kept.iter().map(|(query, _)| *query));
        let groups = open.chunks(GROUP);
        let weight = |group: &[(Query, f64)]| group.iter().map(|(_, weight)| weight).sum();
        let weights: Vec<f64> = groups.clone().map(weight).collect();
        for (group, part) in groups.zip(shares_ahead(&weights)) {
            let left = deadline.saturating_sub(self.elapsed());
            let of_heats = left.mul_f64((part / shares).clamp(0.0, 1.0)) / 2;
            let mut ending = self.heats(group, self.elapsed() + of_heats)?;
            let is_stopped = ending == Some(StopReason::Stopped);
            let ended = if is_stopped { Ok(None) } else { self.run_finals() };
            self.launched = 0;
            let finals = std::mem::take(&mut self.finals);
            self.conclude(finals);
            ending = ended?.or(ending);
            if ending.is_some() {
                return Ok(ending);
            }
        }
        Ok(None)
    }

    /// Holds the heats of each query of a group. They share the time until `deadline` after the start
    /// by their weights. A query's heats begin only if its final fits into the budget too. Returns
    /// the reason why the search must end, if it must.
    fn heats(
        &mut self,
        group: &[(Query, f64)],
        deadline: Duration,
    ) -> Result<Option<StopReason>, SearchError<W::Error>> {
        let Search { rigour, budget, stop, ref workload, .. } = *self.search;
        let weights: Vec<f64> = group.iter().map(|(_, weight)| *weight).collect();
        // A final gets as much time as the heats before it should have taken. On a busy machine a
        // launch takes longer than its time, and so will those of the final.
        let (mut of_finals, mut overrun) = (Duration::ZERO, Duration::ZERO);
        let of_final = |slice: Duration, overrun: Duration| slice + overrun * FINAL_LAUNCHES;
        let most = deadline.saturating_sub(self.elapsed());
        for ((query, _), part) in group.iter().zip(shares_ahead(&weights)) {
            // Relaxed: the flag publishes no other data.
            if stop.load(Ordering::Relaxed) {
                return Ok(Some(StopReason::Stopped));
            }
            let incumbent = self.incumbent(query);
            let field = contest::field(self.bench, query, incumbent.as_ref(), rigour);
            let left = deadline.saturating_sub(self.elapsed()).min(most.saturating_sub(of_finals));
            let share = left.mul_f64(part.clamp(0.0, 1.0));
            // The queries of a program share all the time, without a cap.
            let cap =
                if workload.refines() { contest::cap(rigour, field.len()) } else { 2 * share };
            let slice = contest::slice(field.len(), 2 * share, cap) / 2;
            if self.elapsed() + of_finals + slice + of_final(slice, overrun) > budget {
                return Ok(Some(StopReason::OutOfBudget));
            }
            let progress = self.progress();
            self.visited.insert(*query);
            if field.is_empty() {
                self.settled_count += 1;
                continue;
            }
            let begun = self.bench.now();
            let observer = &mut *self.observer;
            let announce =
                |candidates: &[Candidate]| observer.measuring(&progress, query, candidates);
            let defender = incumbent.as_ref();
            let heats = contest::heats(self.bench, query, defender, field, rigour, slice, announce);
            let contest::Heats { last: race, heat, near, launches } =
                heats.map_err(|source| SearchError { query: *query, source })?;
            let taken = self.bench.now().saturating_sub(begun);
            let beyond = if taken > slice.mul_f64(LATE) { taken - slice } else { Duration::ZERO };
            overrun = beyond / u32::try_from(launches).unwrap_or(u32::MAX).max(1);
            of_finals += of_final(slice, overrun);
            let (query, most, taken) = (*query, slice / FINAL_LAUNCHES, Duration::ZERO);
            self.finals.push(FinalRace { query, incumbent, race, heat, near, most, taken });
        }
        Ok(None)
    }

    /// Measures the finals in turn, one launch of each.
    fn run_finals(&mut self) -> Result<Option<StopReason>, SearchError<W::Error>> {
        let Search { budget, stop, .. } = *self.search;
        let mut ending = None;
        for launch in 0..FINAL_LAUNCHES {
            if launch == 1 && self.keep_affordable() {
                ending = Some(StopReason::OutOfBudget);
            }
            let left_count = |count: usize, index: usize| {
                let launches = (FINAL_LAUNCHES - launch) as usize * count - index;
                u32::try_from(launches).unwrap_or(u32::MAX)
            };
            let count = self.finals.len();
            for index in 0..count {
                if stop.load(Ordering::Relaxed) {
                    return Ok(Some(StopReason::Stopped));
                }
                let FinalRace { most, taken, .. } = self.finals[index];
                let elapsed = self.elapsed();
                let left = budget.saturating_sub(elapsed);
                let share = (left / left_count(count, index)).min(most);
                if elapsed + share.max(taken) > budget {
                    return Ok(Some(StopReason::OutOfBudget));
                }
                self.launch(index, share)?;
                if self.finals[index].race.was_disturbed() && self.wait(share) {
                    self.launch(index, share)?;
                }
                self.launched += 1;
            }
        }
        Ok(ending)
    }

    /// Measures a final in one launch.
    fn launch(&mut self, index: usize, time: Duration) -> Result<(), SearchError<W::Error>> {
        let (progress, begun) = (self.progress(), self.bench.now());
        let FinalRace { query, race, taken, .. } = &mut self.finals[index];
        self.observer.measuring(&progress, query, race.field());
        let blocks = self.bench.launch(query, race.field(), time);
        race.add(blocks.map_err(|source| SearchError { query: *query, source })?);
        *taken = self.bench.now().saturating_sub(begun);
        Ok(())
    }

    /// Waits until others leave the cores alone. Returns whether they do while there is still time
    /// for a launch that takes `time`.
    fn wait(&mut self, time: Duration) -> bool {
        let Search { budget, stop, .. } = *self.search;
        let begun = self.bench.now();
        let most = (budget / WAIT_SHARE).saturating_sub(self.waited);
        let most = most.min(budget.saturating_sub(self.elapsed() + time));
        let mut is_free = false;
        let waited = loop {
            let waited = self.bench.now().saturating_sub(begun);
            let left = most.saturating_sub(waited);
            if is_free || left.is_zero() || stop.load(Ordering::Relaxed) {
                break waited;
            }
            self.observer.waiting(&self.progress(), left);
            is_free = self.bench.wait_for_cores(left.min(WAIT_STEP));
        };
        self.waited += waited;
        is_free
    }

    /// Ends the last finals if the launches of all would take longer than the time that is left,
    /// because a final with few launches decides nothing. Returns whether it ended any.
    fn keep_affordable(&mut self) -> bool {
        let left = self.search.budget.saturating_sub(self.elapsed());
        let mut needed = Duration::ZERO;
        let is_over = |one: &FinalRace| {
            needed += one.taken * (FINAL_LAUNCHES - 1);
            needed > left
        };
        let count = self.finals.iter().position(is_over).unwrap_or(self.finals.len());
        // One decides something in any case.
        let count = count.max(1).min(self.finals.len());
        let ended = self.finals.split_off(count);
        let ends = !ended.is_empty();
        self.conclude(ended);
        ends
    }

    /// Keeps the results of finals that are over. A final with too few launches decides nothing: then
    /// the last heat gives the time of the incumbent, which stays the choice.
    fn conclude(&mut self, finals: Vec<FinalRace>) {
        let seen = seen_classes(finals.iter().map(|last| &last.race));
        for FinalRace { query, incumbent, race, heat, near, .. } in finals {
            self.settled_count += 1;
            let rigour = self.search.rigour;
            let old = self.before.entry(&query).filter(|old| old.is_measured());
            let old_class = old.and_then(|old| old.class);
            let won =
                |race| contest::won(&query, race, incumbent.as_ref(), old_class, &seen, rigour);
            if let Some(entry) = won(&race).or_else(|| heat.as_ref().and_then(won)) {
                self.keep(entry, &near);
            }
        }
    }

    /// Inserts an entry with the candidates that came near its choice in this and earlier searches.
    /// An open entry does not replace one that is decided.
    fn keep(&mut self, entry: Entry, near: &[Candidate]) {
        self.measured_count += 1;
        let old = self.wisdom.entry(&entry.query).filter(|old| old.is_measured());
        let decided =
            old.filter(|old| !entry.is_decided() && old.is_decided() && old.choice == entry.choice);
        if let Some(old) = decided.cloned() {
            self.observer.entry_measured(&self.progress(), &old, self.wisdom);
            return;
        }
        let old = old.into_iter().flat_map(|old| once(&old.choice).chain(old.alternatives()));
        let entry = contest::after(near.iter().chain(old).cloned().collect::<Vec<_>>(), entry);
        self.wisdom.insert(entry.clone());
        self.observer.entry_measured(&self.progress(), &entry, self.wisdom);
    }

    /// Measures sizes between neighbours with different winners until no such size is left.
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
            // The crossovers found now lead to about the same number again, half as far apart.
            if let Some(ending) = self.tune(&work, budget, 2.0)? {
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
