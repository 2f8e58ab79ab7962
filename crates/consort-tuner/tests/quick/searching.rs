//! Searches: their quality and duration, and the entries that they keep, add and leave out.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use consort_fabric::{CallSpec, Candidate, Query};
use consort_sandbox::seeds;
use consort_tuner::{
    Block, Catalog, Confidence, Entry, Grid, Identity, Measurements, Observer, Outcome, Progress,
    Rigour, Search, Selector, StopReason, Wisdom, Workbench, Workload, inconsistencies,
};

use crate::fake::{Fake, REDUCE};

const CORES: usize = 8;
/// A PE on each core.
const PES: u32 = 8;
static GO_ON: AtomicBool = AtomicBool::new(false);

fn empty(bench: &Fake) -> Wisdom {
    Wisdom::new(Identity::new("paper", bench))
}

fn search(grid: &Grid, rigour: Rigour, budget: Duration) -> Search<'static> {
    Search {
        workload: Workload::from(grid),
        rigour,
        budget,
        retune: false,
        cores: CORES,
        stop: &GO_ON,
    }
}

fn run(search: Search<'_>, bench: &mut Fake, wisdom: &mut Wisdom) -> Outcome {
    search.run(bench, wisdom, &mut ()).unwrap()
}

/// Returns every power of two of every row of the grid.
fn all_sizes(grid: &Grid) -> Vec<Query> {
    let bytes = (3..=22).map(|power| 1 << power).collect();
    Grid { bytes, ..grid.clone() }.points()
}

/// Returns the share of `queries` where the choice is within 10 % of the best.
fn share_of_good(bench: &Fake, wisdom: Option<&Wisdom>, queries: &[Query]) -> f64 {
    let is_good = |query: &&Query| {
        let selector = Selector::new(bench, Measurements::new(wisdom, CORES));
        let selected = selector.select(&CallSpec::from(*query)).unwrap();
        Fake::true_ns(query, &selected.candidate) <= bench.best_ns(query) * 1.1
    };
    queries.iter().filter(is_good).count() as f64 / queries.len() as f64
}

/// Candidates that came near are kept for refinement, not only the finalists, but none far behind.
#[test]
fn near_candidates_are_kept() {
    let mut bench = Fake::new(4);
    let mut wisdom = empty(&bench);
    let grid = Grid::new(CORES, &[]);
    run(search(&grid, Rigour::Patient, Duration::from_secs(60)), &mut bench, &mut wisdom);
    let (mut count, mut alone) = (0, 0);
    for entry in wisdom.entries().filter(|entry| entry.is_measured()) {
        let best_ns = Fake::true_ns(&entry.query, &entry.choice);
        for one in &entry.contenders {
            assert!(
                *one != entry.choice
                    && entry.alternatives().filter(|alternatives| *alternatives == one).count()
                        == 1
            );
            // The noise of a heat, which measures each only a few times, and of the final's winner.
            assert!(Fake::true_ns(&entry.query, one) < 1.6 * best_ns, "{entry:?}");
        }
        count += entry.contenders.len();
        alone += usize::from(entry.contenders.is_empty());
    }
    assert!(count > 100 && alone > 0, "{count} kept, and none in {alone} entries");
}

#[test]
fn the_choices_are_near_the_best() {
    let grid = Grid::new(CORES, &[32]);
    let queries = all_sizes(&grid);
    let untuned = share_of_good(&Fake::new(0), None, &queries);
    assert!(untuned < 0.8, "the model errs enough to be corrected: {untuned}");
    let rigours = [Rigour::Measure, Rigour::Patient, Rigour::Exhaustive];
    let all = rigours.map(|rigour| [1, 2, 3].map(|seed| (rigour, seed))).concat();
    for (rigour, seed) in seeds::some_of(all) {
        let mut bench = Fake::new(seed);
        let mut wisdom = empty(&bench);
        let budget = Duration::from_secs(120);
        let outcome = run(search(&grid, rigour, budget), &mut bench, &mut wisdom);
        let share = share_of_good(&bench, Some(&wisdom), &queries);
        assert!(share >= 0.9, "{rigour}, seed {seed}: {share}, {outcome:?}");
        println!("{rigour}, seed {seed}: {share:.3}, {outcome:?}");
        // On the imaginary machine, all operations with the same number of bytes cost the same,
        // whether it is the size of a block or of all data.
        let mut contradictions = inconsistencies(&wisdom);
        let is_told =
            |query: &Query| wisdom.entry(query).is_some_and(|it| !it.confidence.is_undecided());
        contradictions.retain(|one| one.more.len() == 1 && is_told(&one.less));
        assert!(contradictions.len() <= 2, "seed {seed}: {contradictions:?}");
    }
}

#[test]
fn a_change_of_winner_is_located() {
    let grid = Grid { pes: vec![PES], ..Grid::new(CORES, &[]) };
    let mut bench = Fake::new(4);
    let mut wisdom = empty(&bench);
    let search = search(&grid, Rigour::Measure, Duration::from_secs(600));
    let outcome = run(search, &mut bench, &mut wisdom);
    assert_eq!(outcome.ending, StopReason::Complete);
    assert!(outcome.refined_count > 0);
    assert_eq!(outcome.measured_count, grid.points().len() + outcome.refined_count);
    let entries: Vec<&Entry> = wisdom.entries().collect();
    for entry in &entries {
        let alike = |other: &&&Entry| {
            Query { bytes: 0, ..other.query } == Query { bytes: 0, ..entry.query }
                && other.query.bytes > entry.query.bytes
        };
        let next = entries.iter().filter(alike).min_by_key(|other| other.query.bytes);
        let matters = |next: &&&Entry| {
            let are_ties = [entry, *next].iter().all(|e| e.confidence == Confidence::Tie);
            next.choice != entry.choice && !are_ties
        };
        if let Some(next) = next.filter(matters) {
            assert_eq!(next.query.bytes, entry.query.bytes * 2, "{entry:?} {next:?}");
        }
    }
}

#[test]
fn estimate_measures_nothing_and_answers_all() {
    let grid = Grid::new(CORES, &[]);
    let mut bench = Fake::new(5);
    let mut wisdom = empty(&bench);
    let outcome = run(search(&grid, Rigour::Estimate, Duration::ZERO), &mut bench, &mut wisdom);
    assert_eq!((outcome.ending, outcome.measured_count), (StopReason::Complete, 0));
    assert_eq!(outcome.estimated_count, grid.points().len());
    assert!(bench.log.is_empty());
    assert!(wisdom.entries().all(|entry| entry.confidence == Confidence::Model));
    assert!(wisdom.entries().len() > grid.points().len(), "refined too");
}

#[test]
fn the_budget_holds_and_the_result_is_complete() {
    let grid = Grid::new(CORES, &[16]);
    for rigour in [Rigour::Measure, Rigour::Patient, Rigour::Exhaustive] {
        for budget_ms in [0, 1, 50, 1000, 7000] {
            let mut bench = Fake::new(6);
            let mut wisdom = empty(&bench);
            let budget = Duration::from_millis(budget_ms);
            let outcome = run(search(&grid, rigour, budget), &mut bench, &mut wisdom);
            assert!(outcome.elapsed <= budget, "{rigour}: {:?} of {budget:?}", outcome.elapsed);
            assert_eq!(outcome.elapsed, bench.now());
            assert!(grid.points().iter().all(|query| wisdom.entry(query).is_some()));
            if budget_ms <= 1000 {
                assert_eq!(outcome.ending, StopReason::OutOfBudget);
                assert!(outcome.estimated_count > 0);
            }
        }
    }
}

/// On a busy machine a launch takes much longer than its time.
#[test]
fn a_query_is_begun_only_if_its_final_fits() {
    let mut bench = Fake::new(7);
    bench.least = Duration::from_millis(150);
    let mut wisdom = empty(&bench);
    let budget = 40 * bench.least;
    let outcome =
        run(search(&Grid::new(CORES, &[]), Rigour::Measure, budget), &mut bench, &mut wisdom);
    let measured: Vec<&Entry> = wisdom.entries().filter(|entry| entry.is_measured()).collect();
    assert!(
        outcome.ending == StopReason::OutOfBudget && outcome.measured_count >= 2,
        "{outcome:?}"
    );
    assert!(measured.iter().all(|entry| entry.is_decided()), "{measured:?}");
}

#[test]
fn search_resumes_where_the_last_one_ended() {
    let grid = Grid::new(CORES, &[]);
    let mut bench = Fake::new(7);
    let mut wisdom = empty(&bench);
    // Queries that too few launches have left open are measured again.
    let settled_count =
        |wisdom: &Wisdom| wisdom.entries().filter(|entry| entry.is_decided()).count();
    let mut runs = 0;
    loop {
        let budget = Duration::from_secs(3);
        let settled = settled_count(&wisdom);
        let outcome = run(search(&grid, Rigour::Measure, budget), &mut bench, &mut wisdom);
        assert_eq!(outcome.kept_count, settled);
        runs += 1;
        if outcome.ending == StopReason::Complete {
            break;
        }
        assert!(settled_count(&wisdom) > settled && runs < 100);
    }
    assert!(runs > 1, "the budget was not too small");
    assert_eq!(settled_count(&wisdom), wisdom.entries().len());
}

#[test]
fn higher_rigour_and_retuning_measure_again_and_lower_rigour_does_not() {
    let grid = Grid { pes: vec![4], ..Grid::new(4, &[]) };
    let mut bench = Fake::new(8);
    let mut wisdom = empty(&bench);
    let long = Duration::from_secs(600);
    run(search(&grid, Rigour::Patient, long), &mut bench, &mut wisdom);
    let before = wisdom.clone();
    for lower in [Rigour::Estimate, Rigour::Measure, Rigour::Patient] {
        let outcome = run(search(&grid, lower, long), &mut bench, &mut wisdom);
        assert_eq!(outcome.measured_count, 0, "{lower}");
        assert_eq!(wisdom, before);
    }
    let retune = Search { retune: true, ..search(&grid, Rigour::Patient, long) };
    let outcome = run(retune, &mut bench, &mut wisdom);
    assert!(outcome.measured_count >= before.entries().len(), "refinements too: {outcome:?}");
    run(search(&grid, Rigour::Exhaustive, long), &mut bench, &mut wisdom);
    let grid_entries = grid.points().into_iter().filter_map(|query| wisdom.entry(&query).cloned());
    assert!(grid_entries.into_iter().all(|entry| entry.rigour == Rigour::Exhaustive));
}

#[test]
fn unmeasurable_candidate_is_not_chosen() {
    let grid = Grid { pes: vec![PES], ..Grid::new(CORES, &[]) };
    let mut bench = Fake::new(9);
    bench.broken = Some("knomial");
    let mut wisdom = empty(&bench);
    run(search(&grid, Rigour::Patient, Duration::from_secs(60)), &mut bench, &mut wisdom);
    assert!(wisdom.entries().all(|entry| entry.choice.algorithm != "knomial"));
    assert!(wisdom.entries().all(Entry::is_measured));
}

/// The search ends in time, measures each query, and replaces no choice. It leaves entries as they
/// are that an earlier search has decided.
#[test]
fn disturbed_blocks_decide_nothing() {
    let grid = Grid { pes: vec![PES], ..Grid::new(CORES, &[]) };
    let mut bench = Fake::new(17);
    let mut estimates = empty(&bench);
    run(search(&grid, Rigour::Estimate, Duration::ZERO), &mut bench, &mut estimates);
    bench.is_disturbed = true;
    let mut wisdom = empty(&bench);
    let budget = Duration::from_secs(60);
    let outcome = run(search(&grid, Rigour::Measure, budget), &mut bench, &mut wisdom);
    assert!(outcome.elapsed <= budget && outcome.estimated_count == 0, "{outcome:?}");
    for query in grid.points() {
        let (entry, estimate) = (wisdom.entry(&query).unwrap(), estimates.entry(&query).unwrap());
        assert_eq!((&entry.choice, entry.confidence), (&estimate.choice, Confidence::Open));
        assert!(entry.is_measured() && !entry.is_decided());
    }

    bench.is_disturbed = false;
    run(search(&grid, Rigour::Measure, budget), &mut bench, &mut wisdom);
    let decided = wisdom.clone();
    bench.is_disturbed = true;
    let again = Search { retune: true, ..search(&grid, Rigour::Measure, budget) };
    assert!(run(again, &mut bench, &mut wisdom).measured_count > 0);
    let is_kept = |entry: &Entry| wisdom.entry(&entry.query) == Some(entry);
    assert!(decided.entries().filter(|entry| entry.is_decided()).all(is_kept));
}

/// Others leave the cores during a wait, and then each query is decided.
#[test]
fn search_waits_for_cores_that_others_use() {
    let grid = Grid { pes: vec![PES], bytes: vec![8], ..Grid::new(CORES, &[]) };
    let budget = Duration::from_secs(60);
    let waited = |busy_for: Duration| {
        let mut bench = Fake::new(17);
        (bench.is_disturbed, bench.disturbed_until) = (true, busy_for);
        let mut wisdom = empty(&bench);
        let outcome = run(search(&grid, Rigour::Measure, budget), &mut bench, &mut wisdom);
        assert!(outcome.elapsed <= budget, "{outcome:?}");
        let entries = grid.points().into_iter().map(|query| wisdom.entry(&query).cloned().unwrap());
        (outcome.waited, entries.collect::<Vec<Entry>>())
    };
    let (none, entries) = waited(Duration::ZERO);
    assert!(none.is_zero() && entries.iter().all(|entry| entry.undisturbed == 1.0));
    let (some, entries) = waited(Duration::from_secs(12));
    assert!(!some.is_zero() && some < budget / 4, "{some:?}");
    assert!(entries.iter().all(|entry| entry.is_decided() && entry.undisturbed > 0.5));
    let (most, entries) = waited(Duration::MAX);
    assert_eq!(most, budget / 4);
    assert!(entries.iter().all(|entry| !entry.is_decided() && entry.undisturbed == 0.0));
}

#[test]
fn heats_shrink_to_a_final() {
    let grid = Grid { pes: vec![PES], bytes: vec![8], ..Grid::new(CORES, &[]) };
    let mut bench = Fake::new(10);
    let mut wisdom = empty(&bench);
    run(search(&grid, Rigour::Patient, Duration::from_secs(60)), &mut bench, &mut wisdom);
    let last = bench.log.last().unwrap();
    let fields: Vec<&Vec<Candidate>> =
        bench.log.iter().filter(|(query, _)| *query == last.0).map(|(_, field)| field).collect();
    for pair in fields.windows(2) {
        assert!(pair[0].len() > pair[1].len() && pair[1].len() >= 2 || pair[0] == pair[1]);
    }
    let duel = fields.iter().filter(|field| **field == &last.1).count();
    assert_eq!((last.1.len(), duel), (3, 10), "two challengers and the incumbent");
    let entry = wisdom.entry(&last.0).unwrap();
    assert!(entry.runner_up.is_some() && entry.margin() >= Some(0.0));
}

#[test]
fn time_grows_with_weight_and_every_query_gets_some() {
    let queries = [8, 64, 512, 4096].map(|bytes| Query { bytes, ..REDUCE });
    let weights = [1e-6, 10.0, 30.0, 1.0];
    let workload = Workload::exactly(queries.into_iter().zip(weights));
    let mut bench = Fake::new(16);
    let mut wisdom = empty(&bench);
    let grid = Grid::new(CORES, &[]);
    let budget = Duration::from_secs(10);
    let search = Search { workload, ..search(&grid, Rigour::Measure, budget) };
    let outcome = run(search, &mut bench, &mut wisdom);
    assert_eq!((outcome.ending, outcome.measured_count), (StopReason::Complete, 4), "{outcome:?}");
    assert_eq!(wisdom.entries().len(), 4, "these queries, and no sizes between them");
    let time_of = |query: &Query| -> f64 {
        let ends = bench.begun.iter().skip(1).chain([&outcome.elapsed]);
        let launches = bench.log.iter().zip(bench.begun.iter().zip(ends));
        let of_query = launches.filter(|((of, _), _)| of == query);
        of_query.map(|(_, (begun, end))| (*end - *begun).as_secs_f64()).sum()
    };
    let [rare, some, most, few] = queries.map(|query| time_of(&query));
    assert!(rare > 0.01 && few > 2.0 * rare, "{rare} {few}");
    assert!((2.5..3.5).contains(&(most / some)), "{most} {some}");
    assert!((6.0..16.0).contains(&(some / few)), "{some} {few}");
}

#[test]
fn one_of_several_identical_candidates_is_measured() {
    let grid = Grid { bytes: vec![64], ..Grid::new(2, &[]) };
    for rigour in [Rigour::Measure, Rigour::Patient, Rigour::Exhaustive] {
        let mut bench = Fake::new(17);
        bench.alike = Some("knomial");
        let mut wisdom = empty(&bench);
        run(search(&grid, rigour, Duration::from_secs(5)), &mut bench, &mut wisdom);
        let trees = |field: &[Candidate]| {
            field.iter().filter(|candidate| candidate.algorithm == "knomial").count()
        };
        assert!(bench.log.iter().all(|(_, field)| trees(field) <= 1), "{rigour}");
        assert!(bench.log.iter().any(|(_, field)| trees(field) == 1), "{rigour}");
        let second =
            |entry: &Entry| entry.runner_up.as_ref().map(|second| second.candidate.clone());
        for entry in wisdom.entries() {
            let both: Vec<Candidate> =
                second(entry).into_iter().chain([entry.choice.clone()]).collect();
            assert!(trees(&both) <= 1, "{entry:?}");
        }
    }
}

/// Stops the search after a number of measurements, and checks its reports.
struct Stopper<'a> {
    stop: &'a AtomicBool,
    measured: usize,
    won_count: usize,
    last: Option<Progress>,
}

impl Observer for Stopper<'_> {
    fn measuring(&mut self, progress: &Progress, _: &Query, candidates: &[Candidate]) {
        assert!(!candidates.is_empty());
        assert!(progress.done_count < progress.total_count);
        assert!(self.last.is_none_or(|last| last.done_count <= progress.done_count));
        self.last = Some(*progress);
        self.measured += 1;
        self.stop.store(self.measured >= 1000, Ordering::Relaxed);
    }

    fn entry_measured(&mut self, _: &Progress, entry: &Entry, wisdom: &Wisdom) {
        assert_eq!(wisdom.entry(&entry.query), Some(entry));
        self.won_count += 1;
    }
}

#[test]
fn observer_sees_each_step_and_the_flag_stops_the_search() {
    let grid = Grid::new(CORES, &[]);
    let mut bench = Fake::new(11);
    let mut wisdom = empty(&bench);
    let stop = AtomicBool::new(false);
    let mut observer = Stopper { stop: &stop, measured: 0, won_count: 0, last: None };
    let search = Search { stop: &stop, ..search(&grid, Rigour::Measure, Duration::from_secs(60)) };
    let outcome = search.run(&mut bench, &mut wisdom, &mut observer).unwrap();
    let Outcome { ending, measured_count, .. } = outcome;
    assert_eq!((ending, measured_count), (StopReason::Stopped, observer.won_count));
    assert!((20..grid.points().len() / 2).contains(&measured_count), "{measured_count}");
    assert_eq!(wisdom.entries().filter(|entry| entry.is_measured()).count(), measured_count);
}

/// No combination of parts is among the candidates, but the best one is found and measured.
#[test]
fn the_best_parts_are_measured_together() {
    let grid = Grid::new(2, &[]);
    for rigour in [Rigour::Measure, Rigour::Patient, Rigour::Exhaustive] {
        let mut bench = Fake::new(13);
        bench.has_parts = true;
        let mut wisdom = empty(&bench);
        let outcome = run(search(&grid, rigour, Duration::from_secs(120)), &mut bench, &mut wisdom);
        let best: Candidate = "two_level(knomial(radix=8),knomial(radix=4))".parse().unwrap();
        // It is a few per cent faster than others, which only many launches can tell.
        let is_best = |entry: &&Entry| {
            entry.is_measured()
                && (entry.choice == best
                    || entry.confidence.is_undecided()
                        && entry.alternatives().any(|it| *it == best))
        };
        let found = wisdom.entries().filter(is_best).count();
        assert!(2 * found > wisdom.entries().len(), "{rigour}: {found}, {outcome:?}");
        let measured = bench.log.iter().filter(|(_, field)| field.contains(&best)).count();
        assert!(measured >= found, "{rigour}");
    }
}

/// Fails in the second group of queries.
struct Failing(Fake);

#[derive(Debug, PartialEq)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PE 1 failed")
    }
}

impl std::error::Error for Broken {}

impl Catalog for Failing {
    fn candidates(&self, query: &Query) -> Vec<Candidate> {
        self.0.candidates(query)
    }

    fn estimate_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        self.0.estimate_ns(query, candidate)
    }
}

impl Workbench for Failing {
    type Error = Broken;

    fn launch(
        &mut self,
        query: &Query,
        candidates: &[Candidate],
        budget: Duration,
    ) -> Result<Vec<Option<Vec<Block>>>, Broken> {
        if self.0.log.len() == 1000 {
            return Err(Broken);
        }
        self.0.launch(query, candidates, budget).map_err(|never| match never {})
    }
}

#[test]
fn a_failure_names_the_query_and_loses_nothing() {
    let grid = Grid::new(2, &[]);
    let mut bench = Failing(Fake::new(12));
    let mut wisdom = empty(&bench.0);
    let error = search(&grid, Rigour::Exhaustive, Duration::from_secs(60))
        .run(&mut bench, &mut wisdom, &mut ())
        .unwrap_err();
    assert_eq!(error.source, Broken);
    let text = error.to_string();
    assert!(text.contains(&error.query.collective.to_string()), "{text}");
    assert_eq!(wisdom.entries().filter(|entry| entry.is_measured()).count(), 64);
}
