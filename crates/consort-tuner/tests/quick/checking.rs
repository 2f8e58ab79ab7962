//! Checks: the losses of good and bad wisdom.

use std::{sync::atomic::AtomicBool, time::Duration};

use consort_fabric::{Collective, SyncModes};
use consort_tuner::{
    Catalog, Check, Entry, Grid, Identity, Rigour, Search, Wisdom, Workbench, Workload,
    inconsistencies,
};

use crate::fake::{Fake, REDUCE};

static GO_ON: AtomicBool = AtomicBool::new(false);
const CORES: usize = 8;
/// A PE on each core.
const PES: u32 = 8;

fn check(workload: &Workload) -> Check<'_> {
    let budget = Duration::from_secs(600);
    Check { workload, sample_count: None, budget, cores: CORES, stop: &GO_ON }
}

/// Returns an entry for `query` with the candidate that is really the worst.
fn worst_entry(bench: &Fake, query: consort_fabric::Query) -> Entry {
    let worst = bench
        .candidates(&query)
        .into_iter()
        .max_by(|a, b| Fake::true_ns(&query, a).total_cmp(&Fake::true_ns(&query, b)));
    Entry { rigour: Rigour::Exhaustive, ..Entry::alone(query, worst.unwrap(), 10.0) }
}

#[test]
fn good_wisdom_loses_little_and_bad_wisdom_much() {
    let grid = Grid { pes: vec![PES], ..Grid::new(CORES, &[]) };
    let mut bench = Fake::new(20);
    let mut wisdom = Wisdom::new(Identity::new("paper", &bench));
    let budget = Duration::from_secs(60);
    let rigour = Rigour::Patient;
    Search {
        workload: Workload::from(&grid),
        rigour,
        budget,
        retune: false,
        cores: CORES,
        stop: &GO_ON,
    }
    .run(&mut bench, &mut wisdom, &mut ())
    .unwrap();
    let mut watched_count = 0;
    let workload = Workload::from(&grid);
    let report = check(&workload).run(&mut bench, Some(&wisdom), |_| watched_count += 1).unwrap();
    assert_eq!(report.penalties.len(), grid.points().len());
    assert_eq!((report.unmeasured_count, watched_count), (0, report.penalties.len()));
    assert!(report.share_within(0.1) >= 0.9, "{}", report.share_within(0.1));

    for query in grid.points() {
        wisdom.insert(worst_entry(&bench, query));
    }
    let report = check(&workload).run(&mut bench, Some(&wisdom), |_| ()).unwrap();
    assert!(report.share_within(0.1) < 0.2, "{}", report.share_within(0.1));
    let worst = report.worst().unwrap();
    assert!(worst.share() > 1.0 && !worst.within_noise, "{worst:?}");
}

#[test]
fn a_check_without_wisdom_judges_the_model() {
    let workload = Workload::from(&Grid::new(CORES, &[]));
    let mut bench = Fake::new(21);
    let sample = Check { sample_count: Some(10), ..check(&workload) };
    let report = sample.run(&mut bench, None, |_| ()).unwrap();
    assert_eq!(report.penalties.len(), 10);
    assert!(report.penalties.iter().all(|penalty| penalty.share() >= 0.0));
}

#[test]
fn check_keeps_its_budget_and_counts_unmeasured() {
    let workload = Workload::from(&Grid::new(CORES, &[]));
    let mut bench = Fake::new(22);
    let short = Check { budget: Duration::from_millis(200), ..check(&workload) };
    let report = short.run(&mut bench, None, |_| ()).unwrap();
    assert!(report.unmeasured_count > 0);
    assert_eq!(report.penalties.len() + report.unmeasured_count, workload.points().len());
    bench.broken = Some("flat");
    let report = check(&workload).run(&mut bench, None, |_| ()).unwrap();
    assert!(report.penalties.iter().all(|penalty| penalty.chosen.algorithm != "flat"));
}

/// One launch of a query may take longer than the whole check, and ends with the check.
#[test]
fn a_check_ends_a_launch_at_its_end() {
    let workload = Workload::from(&Grid::new(CORES, &[]));
    let mut bench = Fake::new(25);
    bench.least = Duration::from_millis(50);
    let short = Check { budget: Duration::from_millis(1000), ..check(&workload) };
    let report = short.run(&mut bench, None, |_| ()).unwrap();
    assert!(!report.penalties.is_empty() && report.unmeasured_count > 0, "{report:?}");
    let taken = bench.now();
    assert!(taken <= short.budget, "{taken:?}");
    assert_eq!(report.penalties.len() + report.unmeasured_count, workload.points().len());
    // The end of a check does not end another search.
    assert_eq!(bench.end, None);
}

/// This also holds for queries whose choice is the best.
#[test]
fn check_spends_its_budget_on_choice_and_rival() {
    let workload = Workload::from(&Grid::new(CORES, &[]));
    let mut bench = Fake::new(24);
    let sample = Check { sample_count: Some(10), ..check(&workload) };
    let report = sample.run(&mut bench, None, |_| ()).unwrap();
    let used = bench.now().as_secs_f64() / sample.budget.as_secs_f64();
    assert!((0.99..=1.0).contains(&used), "{used}");
    for penalty in &report.penalties {
        let mut last = bench.log.iter().filter(|(query, _)| *query == penalty.query);
        let (_, field) = last.next_back().expect("it was measured");
        assert!(field.len() == 2 && field[0] == penalty.chosen, "{field:?}");
    }
}

#[test]
fn contradictions_are_found_and_noise_is_not() {
    let bench = Fake::new(23);
    let mut wisdom = Wisdom::new(Identity::new("paper", &bench));
    let timed = |bytes, median_ns: f64| {
        let ci95_ns = Some((median_ns * 0.98, median_ns * 1.02));
        let query = consort_fabric::Query { bytes, ..REDUCE };
        Entry { median_ns, ci95_ns, ..worst_entry(&bench, query) }
    };
    for (bytes, median_ns) in [(8, 100.0), (64, 103.0), (512, 101.0), (4096, 60.0)] {
        wisdom.insert(timed(bytes, median_ns));
    }
    let found = inconsistencies(&wisdom);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].less.bytes, found[0].more[0].bytes), (512, 4096));
    let text = found[0].to_string();
    assert!(text.contains("512 B") && text.contains("60.0 ns"), "{text}");

    let mut strict = timed(512, 50.0);
    strict.query.sync = SyncModes::STRICT;
    wisdom.insert(strict);
    assert_eq!(inconsistencies(&wisdom).len(), 2, "mine is slower than strict");

    let parts = |wisdom: &mut Wisdom, sync, all_reduce_ns| {
        let part = 64 / u64::from(REDUCE.pes);
        for (collective, sync, bytes, median_ns) in [
            (Collective::AllReduce, SyncModes::MINE, 64, all_reduce_ns),
            (Collective::ReduceScatter, sync, part, 110.0),
            (Collective::AllGather, sync, part, 120.0),
        ] {
            let mut entry = timed(bytes, median_ns);
            (entry.query.collective, entry.query.sync) = (collective, sync);
            wisdom.insert(entry);
        }
        let found = inconsistencies(wisdom);
        found.into_iter().find(|one| one.more.len() == 2)
    };
    let mut overlapping = wisdom.clone();
    assert_eq!(parts(&mut overlapping, SyncModes::MINE, 300.0), None, "rows of such calls overlap");
    assert_eq!(parts(&mut wisdom, SyncModes::STRICT, 240.0), None, "within the noise");
    let text = parts(&mut wisdom, SyncModes::STRICT, 300.0).expect("300 ns for 230 ns").to_string();
    assert!(text.contains("reduce_scatter of 8 B") && text.contains("and then"), "{text}");
    assert!(text.ends_with("230 ns"), "{text}");
}
