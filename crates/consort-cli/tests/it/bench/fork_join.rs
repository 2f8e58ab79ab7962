//! `consort bench fork-join`: each program with each installed library.

use std::collections::BTreeSet;

use super::{FIGURE, keys, objects, stdout};
use consort_sandbox::commands::says;

/// A launch compares its results with those of one thread before it measures.
#[test]
fn programs_are_timed_with_peers() {
    let figures = objects("bench fork-join empty nbody tick graph --threads 2 --budget 0 --json");
    for figure in &figures {
        assert_eq!(keys(figure), BTreeSet::from(FIGURE));
    }
    for bench in ["empty", "nbody", "tick", "graph"] {
        let of: Vec<_> = figures.iter().filter(|figure| figure["bench"] == bench).collect();
        let ours = ["quiet, consort", "quiet, consort-spin", "quiet, consort-barrier"];
        for name in ours {
            let figure = of.iter().find(|figure| figure["algorithm"] == name).expect(name);
            assert!(figure["peer"].is_null() && figure["mean_ns"].as_f64() > Some(0.0), "{figure}");
            assert!(figure["busy_cores"].as_f64() > Some(0.0), "{figure}");
        }
        for peer in ["rayon", "std-scope", "std-barrier", "hurdles", "one-thread"] {
            let figure = of.iter().find(|figure| figure["peer"] == peer).expect(peer);
            assert!(figure["median_ns"].as_f64() > Some(0.0), "{figure}");
        }
    }
}

#[test]
fn table_of_a_token_fits_80_columns() {
    let page = stdout("bench fork-join decode --threads 2 --peers consort,rayon --budget 0");
    assert!(page.contains("150 regions") && page.contains("rayon"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80 || line.contains(';')), "{page}");
}

/// Without compilers in `PATH`, the libraries in C and C++ are named with their packages.
#[test]
fn missing_libraries_are_named_with_their_packages() {
    let page = stdout(
        "bench fork-join empty --peers consort,libgomp,libomp,cxx-barrier,ck-mcs,ck-combining \
         --budget 0",
    );
    for (name, compiler, packages) in [
        ("libgomp", "gcc", "gcc"),
        ("libomp", "clang", "clang and libomp-dev"),
        ("cxx-barrier", "g++", "g++"),
        ("ck-combining, ck-mcs", "gcc", "gcc and libck-dev"),
    ] {
        let line =
            format!("not measured: {name}: no {compiler} in PATH: on Debian, install {packages}");
        assert!(says(&page, &line), "{line} in {page}");
    }
}

/// A quota needs the right to create a control group; without it, the condition is left out.
#[test]
fn conditions_are_established_or_named() {
    let line = "bench fork-join nbody --threads 1 --peers consort --under all --budget 0 --json";
    let figures = objects(line);
    for (condition, threads) in
        [("quiet", 1), ("busy-1", 1), ("busy-2", 1), ("threads-2x", 2), ("threads-4x", 4)]
    {
        let name = format!("{condition}, consort");
        let figure = figures.iter().find(|figure| figure["algorithm"] == *name).expect(&name);
        assert_eq!(figure["pes"], threads, "{figure}");
        assert!(figure["median_ns"].as_f64() > Some(0.0), "{figure}");
    }
    let has_quota = figures.iter().any(|figure| figure["algorithm"] == "quota-half, consort");
    assert!(has_quota || figures.iter().any(|figure| figure["peer"] == "quota-half"));
}

/// With a thread a core, the threads would use all cores. A launch may see a part of a period, and
/// therefore a bit more than its quota.
#[test]
fn quota_limits_processor_time() {
    let cores = std::thread::available_parallelism().expect("a number of cores").get();
    let line = "bench fork-join nbody --peers consort-spin --under quota-half --budget 0 --json";
    for figure in objects(&format!("{line} --threads {cores}")) {
        let busy_cores = figure["busy_cores"].as_f64();
        let is_absent = figure["peer"] == "quota-half";
        assert!(is_absent || busy_cores.is_some_and(|busy| busy < 0.75 * cores as f64), "{figure}");
    }
}
