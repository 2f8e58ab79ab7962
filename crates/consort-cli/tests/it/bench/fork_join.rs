//! `consort bench fork-join`: each program with each library that is there.

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
        "bench fork-join empty --peers consort,libgomp,libomp,cxx-barrier,ck-mcs --budget 0",
    );
    for (name, compiler, packages) in [
        ("libgomp", "gcc", "gcc"),
        ("libomp", "clang", "clang and libomp-dev"),
        ("cxx-barrier", "g++", "g++"),
        ("ck-mcs", "gcc", "gcc and libck-dev"),
    ] {
        let line =
            format!("not measured: {name}: no {compiler} in PATH: on Debian, install {packages}");
        assert!(says(&page, &line), "{line} in {page}");
    }
}
