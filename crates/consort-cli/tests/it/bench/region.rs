//! `consort bench region`: with and without a compiler for OpenMP.

use std::{collections::BTreeSet, env, ffi::OsStr};

use serde_json::Value;

use super::{FIGURE, consort_in, folder_with, keys, undisturbed};
use consort_sandbox::commands::says;

/// Returns the figures of a number of PEs, of any class, in the order of the rows.
fn regions_of(figures: &[Value], pes: u32) -> Vec<&str> {
    let of = |figure: &&Value| figure["pes"] == pes && figure["median_ns"].is_number();
    let mut names: Vec<&str> = Vec::new();
    for figure in figures.iter().filter(of) {
        let name = figure["algorithm"].as_str().expect("a name");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Without a compiler in `PATH`, OpenMP is missing, and that is reported.
#[test]
fn regions_and_barriers_are_timed_with_peers() {
    let ours = [
        "empty region, Pool::run",
        "empty region, JobBuilder::run",
        "sum in a region, Pool::run_with, all_reduce",
        "sum in a region, Pool::run_with, results",
        "barrier, Team::barrier",
        "barrier, Barrier, joined",
        "barrier, Barrier::wait",
    ];
    let Some(text) = undisturbed("bench region --pes 2,1,8 --budget 0 --json") else { return };
    let figures: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for figure in &figures {
        assert_eq!(keys(figure), BTreeSet::from(FIGURE));
        assert_eq!(figure["bench"], "region");
        let is_known = figure["median_ns"].as_f64() > Some(0.0);
        assert!(is_known || figure["peer"] == "OpenMP", "{figure}");
        let is_ours = figure["algorithm"].as_str().is_some_and(|name| ours.contains(&name));
        assert_eq!(figure["peer"].is_null(), is_ours, "{figure}");
    }
    for pes in [1, 2, 8] {
        let names = regions_of(&figures, pes);
        assert!(ours.iter().all(|name| names.contains(name)) || pes == 2, "{names:?}");
        for library in ["rayon", "std::thread::scope", "std::sync::Barrier", "hurdles"] {
            let is_there = names.iter().any(|name| name.contains(library));
            assert!(is_there || pes == 2, "{library} in {names:?}");
        }
    }
    let absent = figures.iter().filter(|figure| figure["peer"] == "OpenMP");
    assert_eq!(absent.clone().count(), 3);
    assert!(absent.clone().all(|figure| figure["median_ns"].is_null()));

    let Some(page) = undisturbed("bench region --pes 8 --budget 0") else { return };
    assert!(says(&page, "not measured: OpenMP: no gcc in PATH: on Debian, install gcc"), "{page}");
    assert!(says(&page, "8 PEs share") || says(&page, "one a core"), "{page}");
    let is_table = |line: &&str| line.starts_with(' ');
    assert!(page.lines().filter(is_table).count() >= 14, "{page}");
    assert!(page.lines().filter(is_table).all(|line| line.chars().count() <= 80), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
}

/// Runs `bench region` with PEs that share cores, and with the programs of these folders.
fn regions_with(path: &OsStr) -> String {
    let output = consort_in(path, "bench region --pes 64 --budget 0");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || complaint.contains("idle"), "{complaint}");
    String::from_utf8(output.stdout).expect("text")
}

/// If the compiler in `PATH` supports OpenMP there are rows for it, and else the reason.
#[test]
fn regions_are_timed_with_openmp() {
    let page = regions_with(&env::var_os("PATH").unwrap_or_default());
    let rows = ["OpenMP parallel", "OpenMP reduction(+)", "OpenMP barrier", "-fopenmp"];
    let is_absent = page.is_empty() || page.contains("not measured: OpenMP: ");
    assert!(is_absent || rows.iter().all(|row| page.contains(row)), "{page}");
}

#[test]
fn a_compiler_without_openmp_is_named_in_a_line() {
    let folder = folder_with("gcc", "echo 'no omp.h' >&2; exit 1");
    let page = regions_with(folder.path().as_os_str()).replace('\n', " ");
    let line = "not measured: OpenMP: gcc cannot compile a program with OpenMP ";
    assert!(page.is_empty() || page.contains(line) && says(&page, "no omp.h"), "{page}");
    assert!(!says(&page, "OpenMP barrier"), "{page}");
}
