//! Comparisons of rows, and files that cannot be compared.

use std::fs;

use serde_json::json;

use super::*;

fn row(algorithm: &str, ns: f64, width: f64) -> Value {
    json!({
        "bench": "broadcast", "fabric": "threads", "pes": 2, "algorithm": algorithm,
        "params": {"radix": 4}, "sync": "mine", "bytes": 8192, "chosen": false,
        "median_ns": ns, "ci95_ns": [ns - width, ns + width], "placement": "pinned:0,1",
        "context": {"machine": "m", "version": env!("CARGO_PKG_VERSION"), "busy": null},
    })
}

fn read(text: &str) -> Result<EarlierResults> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.json");
    fs::write(&path, text).unwrap();
    EarlierResults::read(&path)
}

fn old(rows: &[Value]) -> EarlierResults {
    read(&rows.iter().map(|row| row.to_string() + "\n").collect::<String>()).unwrap()
}

fn refused(text: &str) -> String {
    format!("{:#}", read(text).unwrap_err())
}

#[test]
fn verdict_depends_on_the_interval_of_the_ratio() {
    let old = old(&[row("flat", 100.0, 1.0)]);
    let of = |ns, width| {
        let compared = old.compared(&[row("flat", ns, width)], "m", false);
        let partner = compared.partners[0].as_ref().unwrap();
        (partner.verdict, partner.ratio)
    };
    assert_eq!(of(120.0, 5.0), ("slower", 1.2));
    assert_eq!(of(120.0, 30.0), ("undecided", 1.2), "the interval includes 1");
    assert_eq!(of(80.0, 5.0), ("faster", 0.8));
    assert_eq!(of(102.0, 1.0), ("same", 1.02), "within the band");
    assert_eq!(of(107.0, 5.0), ("slower", 1.07), "partly in the band");
    assert_eq!(of(104.0, 2.0), ("undecided", 1.04), "partly outside of the band");
    assert_eq!(of(100.0, 90.0), ("undecided", 1.0), "too wide to be the same");
    let mut alone = row("flat", 200.0, 1.0);
    alone["ci95_ns"] = Value::Null;
    let compared = old.compared(&[alone], "m", false);
    assert_eq!(compared.partners[0].as_ref().unwrap().verdict, "undecided");
}

#[test]
fn busy_stands_next_to_the_verdict() {
    let verdict = |old_busy: Value, is_busy| {
        let mut row_then = row("flat", 100.0, 1.0);
        row_then["context"]["busy"] = old_busy;
        let compared = old(&[row_then]).compared(&[row("flat", 200.0, 1.0)], "m", is_busy);
        compared.lines[0][5].clone()
    };
    assert_eq!(verdict(Value::Null, false), "slower");
    assert_eq!(verdict(Value::Null, true), "slower, busy");
    assert_eq!(verdict(json!("load 3"), false), "slower, busy");
}

#[test]
fn more_operations_a_second_are_faster() {
    let entry = |mops: f64| {
        let mut entry = row("Mcs", 5.0, 1.0);
        entry["mops"] = json!(mops);
        entry["ci95_mops"] = json!([mops - 1.0, mops + 1.0]);
        entry
    };
    let compared = old(&[entry(10.0)]).compared(&[entry(20.0)], "m", false);
    let partner = compared.partners[0].as_ref().unwrap();
    assert_eq!((partner.verdict, partner.ratio), ("faster", 0.5));
    assert_eq!(compared.lines[0][1..3], ["10.00 Mops/s", "20.00 Mops/s"]);
}

#[test]
fn a_lock_is_compared_in_the_same_situation() {
    let entry = |situation: &str, busy: u64, mops: f64| {
        json!({
            "bench": "lock", "situation": situation, "busy_processes": busy, "algorithm": "Mcs",
            "load": "full", "threads": 8, "mops": mops, "median_ns": 5.0,
            "context": {"version": env!("CARGO_PKG_VERSION")},
        })
    };
    let old = old(&[entry("long", 0, 0.002), entry("long", 1, 0.001), entry("short", 0, 20.0)]);
    let compared = old.compared(&[entry("long", 0, 0.001), entry("hog", 0, 1.0)], "", false);
    assert_eq!(compared.lines[0][..3], ["lock long, 8 threads: Mcs", "2000 ops/s", "1000 ops/s"]);
    assert_eq!(compared.without[0], "new alone: lock hog, 8 threads: Mcs");
    assert_eq!(compared.without.len(), 3, "{:?}", compared.without);
}

#[test]
fn rows_without_a_partner_are_named() {
    let old = old(&[row("flat", 100.0, 1.0), row("chain", 100.0, 1.0)]);
    let compared = old.compared(&[row("flat", 100.0, 1.0), row("knomial", 9.0, 1.0)], "m", false);
    assert_eq!(
        compared.without,
        [
            "new alone: broadcast of 8 KiB, 2 PEs, mine: knomial(radix=4)",
            "old alone: broadcast of 8 KiB, 2 PEs, mine: chain(radix=4)"
        ]
    );
    assert!(
        compared.summary.contains("1 the same, 0 undecided, 2 without"),
        "{}",
        compared.summary
    );
}

#[test]
fn a_choice_is_compared_with_the_choice_before() {
    let chosen = |algorithm, ns| {
        let mut row = row(algorithm, ns, 1.0);
        row["chosen"] = json!(true);
        row
    };
    let compared = old(&[chosen("flat", 100.0)]).compared(&[chosen("chain", 50.0)], "m", false);
    assert_eq!(
        compared.lines[0][0],
        "broadcast of 8 KiB, 2 PEs, mine: chain(radix=4) * (was flat(radix=4))"
    );
    let compared = old(&[chosen("flat", 100.0)]).compared(&[row("chain", 50.0, 1.0)], "m", false);
    assert_eq!(compared.without.len(), 2, "a forced algorithm is not a choice");
    let compared = old(&[chosen("flat", 100.0)]).compared(&[row("flat", 50.0, 1.0)], "m", false);
    assert!(compared.without.is_empty(), "by the same algorithm they are of the same");
}

#[test]
fn doubtful_comparison_gets_warnings() {
    let mut busy = row("flat", 100.0, 5.0);
    busy["context"] = json!({"machine": "other", "version": "0.0.1", "busy": "load 3"});
    busy["placement"] = json!("unpinned");
    busy["c2c_ns"] = json!(50.0);
    let mut new = row("flat", 100.0, 5.0);
    new["c2c_ns"] = json!(70.0);
    let warnings = old(&[busy.clone()]).compared(&[new.clone()], "m", false).warnings.join("\n");
    for part in [
        "another machine: other; here: m",
        "of consort 0.0.1",
        "busy then",
        "placed differently",
        "took 50.0 ns then and 70.0 ns now",
    ] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    new["c2c_ns"] = json!(55.0);
    let warnings =
        old(&[busy.clone(), row("chain", 1.0, 0.1)]).compared(&[], "m", false).warnings.join("\n");
    assert!(
        warnings.contains("another machine: other") && warnings.contains("0.0.1"),
        "{warnings}"
    );
    let warnings = old(&[busy]).compared(&[new], "m", false).warnings.join("\n");
    assert!(!warnings.contains("cache line"), "{warnings}");
}

#[test]
fn the_last_of_several_results_counts() {
    let old = old(&[row("flat", 100.0, 5.0), row("flat", 50.0, 5.0)]);
    assert_eq!(old.rows.len(), 1);
    assert_eq!(old.rows[0].measure.unwrap().median.0, 50.0);
}

#[test]
fn check_passes_only_for_rows_that_are_surely_fast_enough() {
    let old = old(&[row("flat", 100.0, 1.0)]);
    let judged = |rows: &[Value], percent| {
        old.judge(&old.compared(rows, "m", false), percent, Duration::from_secs(4));
        old.failure.take()
    };
    let of = |ns, width, percent| judged(&[row("flat", ns, width)], percent);
    assert_eq!(of(200.0, 5.0, None), None);
    assert_eq!(of(107.0, 1.0, Some(10.0)), None, "within what is allowed");
    let why = of(200.0, 5.0, Some(10.0)).unwrap();
    assert!(why.ends_with("old.json: 1 of 1 row more than 10 % slower"), "{why}");
    let why = of(100.0, 20.0, Some(10.0)).unwrap();
    assert!(why.contains("1 of 1 row perhaps more than 10 % slower"), "{why}");
    assert!(why.contains("for about 15 s, with --budget 15 or --until-decided 30"), "{why}");
    let why = of(110.1, 5.0, Some(10.0)).unwrap();
    assert!(why.ends_with("measure both for longer, with --budget"), "{why}");
    let mut peer = row("flat", 100.0, 20.0);
    peer["peer"] = json!("std");
    let why = judged(&[peer], Some(10.0)).unwrap();
    assert!(why.contains("no row of Consort has a partner"), "{why}");
}

#[test]
fn a_protected_row_is_decided_by_its_limit() {
    let old = old(&[row("flat", 100.0, 1.0)]);
    let is_undecided = |ns, width, percent| {
        old.compared(&[row("flat", ns, width)], "m", false).is_undecided(percent)
    };
    assert!(is_undecided(104.0, 6.0, None), "neither the same nor slower");
    assert!(!is_undecided(104.0, 6.0, Some(20.0)), "surely within 20 %");
    assert!(is_undecided(104.0, 6.0, Some(5.0)));
    assert!(!is_undecided(200.0, 6.0, Some(5.0)));
}

#[test]
fn invalid_result_file_error_names_its_line() {
    let good = row("flat", 1.0, 0.1).to_string();
    let cut = refused(&format!("{good}\n{}", &good[..good.len() / 2]));
    assert!(cut.contains("old.json, line 2: it ends after") && cut.contains("characters"), "{cut}");
    assert!(refused("").contains("has no result of `consort bench --json`"));
    assert!(refused("hello").contains("line 1: no JSON: expected value"));
    assert!(refused("[1, 2]").contains("line 1: not a result of `consort bench --json`"));
    assert!(refused("{\"bench\": \"broadcast\"}").contains("line 1: not a result"));
    let version = env!("CARGO_PKG_VERSION");
    let context = |version: &str| format!("{{\"context\": {{\"version\": \"{version}\"}}}}");
    let other = refused(&context("9.9.9"));
    assert!(other.contains("of consort 9.9.9, whose results differ"), "{other}");
    for (ns, shown) in [(json!("9"), "\"9\""), (json!(0), "0"), (json!(-5.5), "-5.5")] {
        let mut row = row("flat", 1.0, 0.1);
        row["median_ns"] = ns;
        let why = refused(&row.to_string());
        assert!(why.contains(&format!("`median_ns` is {shown}, which is not a time")), "{why}");
    }
    assert!(refused(&context(version)).contains("of a command other than `consort bench`: it has"));
}
