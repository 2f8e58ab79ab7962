//! Checks: what good and bad wisdom lose.

use std::{sync::atomic::AtomicBool, time::Duration};

use consort_fabric::Collective;
use consort_tuner::{
    Catalog, Check, Entry, Grid, Identity, Rigour, Search, Wisdom, inconsistencies,
};

use crate::fake::{Fake, REDUCE};

static GO_ON: AtomicBool = AtomicBool::new(false);
const CORES: u32 = 8;

fn check(grid: &Grid) -> Check<'_> {
    let budget = Duration::from_secs(600);
    Check { grid, sample_count: None, budget, cores: CORES, stop: &GO_ON }
}

/// An entry for `query` with the candidate that is really the worst.
fn worst_entry(bench: &Fake, query: consort_fabric::Query) -> Entry {
    let worst = bench
        .candidates(&query)
        .into_iter()
        .max_by(|a, b| Fake::true_ns(&query, a).total_cmp(&Fake::true_ns(&query, b)));
    Entry { rigour: Rigour::Exhaustive, ..Entry::alone(query, worst.unwrap(), 10.0) }
}

#[test]
fn good_wisdom_loses_little_and_bad_wisdom_much() {
    let grid = Grid { pes: vec![CORES], ..Grid::new(CORES, &[]) };
    let mut bench = Fake::new(20);
    let mut wisdom = Wisdom::new(Identity::new("paper", &bench));
    let budget = Duration::from_secs(60);
    let rigour = Rigour::Patient;
    Search { grid: &grid, rigour, budget, retune: false, stop: &GO_ON }
        .run(&mut bench, &mut wisdom, &mut ())
        .unwrap();
    let mut watched_count = 0;
    let report = check(&grid).run(&mut bench, Some(&wisdom), |_| watched_count += 1).unwrap();
    assert_eq!(report.penalties.len(), grid.points().len());
    assert_eq!((report.unmeasured_count, watched_count), (0, report.penalties.len()));
    assert!(report.share_within(0.1) >= 0.9, "{}", report.share_within(0.1));

    for query in grid.points() {
        wisdom.insert(worst_entry(&bench, query));
    }
    let report = check(&grid).run(&mut bench, Some(&wisdom), |_| ()).unwrap();
    assert!(report.share_within(0.1) < 0.2, "{}", report.share_within(0.1));
    let worst = report.worst().unwrap();
    assert!(worst.share() > 1.0 && !worst.within_noise, "{worst:?}");
}

#[test]
fn a_check_without_wisdom_judges_the_model() {
    let grid = Grid::new(CORES, &[]);
    let mut bench = Fake::new(21);
    let sample = Check { sample_count: Some(10), ..check(&grid) };
    let report = sample.run(&mut bench, None, |_| ()).unwrap();
    assert_eq!(report.penalties.len(), 10);
    assert!(report.penalties.iter().all(|penalty| penalty.share() >= 0.0));
}

#[test]
fn a_check_keeps_to_its_budget_and_says_what_it_left_out() {
    let grid = Grid::new(CORES, &[]);
    let mut bench = Fake::new(22);
    let short = Check { budget: Duration::from_millis(200), ..check(&grid) };
    let report = short.run(&mut bench, None, |_| ()).unwrap();
    assert!(report.unmeasured_count > 0);
    assert_eq!(report.penalties.len() + report.unmeasured_count, grid.points().len());
    bench.broken = Some("flat");
    let report = check(&grid).run(&mut bench, None, |_| ()).unwrap();
    assert!(report.penalties.iter().all(|penalty| penalty.chosen.algorithm != "flat"));
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
    assert!(text.contains("512 bytes") && text.contains("60 ns"), "{text}");

    let mut strict = timed(512, 50.0);
    strict.query.sync = consort_fabric::SyncModes::STRICT;
    wisdom.insert(strict);
    assert_eq!(inconsistencies(&wisdom).len(), 2, "mine is slower than strict");

    for (collective, bytes, median_ns) in [
        (Collective::AllReduce, 64, 300.0),
        (Collective::ReduceScatter, 64 / u64::from(REDUCE.pes), 110.0),
        (Collective::AllGather, 64 / u64::from(REDUCE.pes), 120.0),
    ] {
        let mut entry = timed(bytes, median_ns);
        entry.query.collective = collective;
        wisdom.insert(entry);
    }
    let found = inconsistencies(&wisdom);
    let composed = found.iter().find(|one| one.more.len() == 2).expect("300 ns for 230 ns");
    let text = composed.to_string();
    assert!(text.contains("reduce_scatter of 8 bytes") && text.contains("and then"), "{text}");
    assert!(text.ends_with("230 ns"), "{text}");
}
