//! OpenMP next to collectives: with the installed compilers, and with fake ones.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsStr,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{FIGURE, consort_in, folder_with, keys};
use consort_sandbox::commands::says;

/// A script that acts as a compiled program: without arguments it names its compiler.
const NAMED: &str = "if test $# = 0; then echo 'library gcc 0.0'; exit; fi";

/// Returns the output of a successful command, with only the programs of this folder.
fn printed(path: &OsStr, line: &str) -> String {
    let output = consort_in(path, line);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {complaint}");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the page of a command as one line, with this script as gcc.
fn page(compiler: &str, line: &str) -> String {
    let folder = folder_with("gcc", compiler);
    printed(folder.path().as_os_str(), line).split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Returns a gcc whose programs are this script. Its last arguments are `-o PROGRAM SOURCE`.
fn makes(program: &str) -> String {
    let program = format!("#!/bin/sh\n{program}\n");
    format!(
        "while test \"$1\" != -o; do shift; done\n\
         /bin/cat > \"$2\" <<'END'\n{program}END\n/bin/chmod +x \"$2\"\n"
    )
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_compiler_that_is_absent_or_fails_is_named_in_a_line() {
    let line = "bench collective all_reduce --bytes 8 --budget 0 --peers libgomp,libomp,hurdles";
    let page = page("echo 'no omp.h' >&2; exit 1", line);
    let fails = "not measured: libgomp: gcc cannot compile a program with OpenMP (on Debian, \
                 install gcc): gcc failed (exit status: 1): no omp.h";
    assert!(page.contains(fails), "{page}");
    assert!(
        says(&page, "not measured: libomp: no clang in PATH: on Debian, install clang"),
        "{page}"
    );
    assert!(page.contains(" hurdles strict "), "{page}");

    let figures = objects(&printed(OsStr::new(""), &format!("{line} --json")));
    for library in ["libgomp", "libomp"] {
        let absent = figures.iter().filter(|figure| figure["peer"] == library);
        assert_eq!(absent.clone().count(), 1, "{figures:?}");
        assert!(absent.clone().all(|figure| figure["median_ns"].is_null()), "{figures:?}");
        assert!(absent.clone().all(|figure| keys(figure) == FIGURE.into()), "{figures:?}");
    }
}

#[test]
fn a_program_that_hangs_is_killed_and_the_rest_goes_on() {
    let begun = Instant::now();
    let hangs = makes(&format!("{NAMED}\nexec /bin/sleep 60"));
    let page = page(&hangs, "bench barrier --budget 0.5 --peers libgomp,std");
    for waiting in ["active", "passive"] {
        let killed = "program was killed: it did not end within 2 s";
        let line = format!("not measured: libgomp {waiting}, gcc 0.0: {killed}");
        assert!(page.contains(&line), "{page}");
    }
    assert!(page.contains(" std ") && page.contains("dissemination"), "{page}");
    assert!(begun.elapsed() < Duration::from_secs(30), "each is launched once");
}

#[test]
fn regions_of_a_program_that_fails_are_left_out() {
    let fails = makes(&format!("{NAMED}\necho 'no threads' >&2; exit 3"));
    let page = page(&fails, "bench region --pes 2 --budget 0.2");
    let why = "failed: program failed (exit status: 3): no threads";
    assert!(page.contains("not measured: OpenMP: ") && page.contains(why), "{page}");
    assert!(page.contains("Team::barrier"), "{page}");
}

#[test]
fn nonsense_is_an_error_in_a_line() {
    let line = "bench collective reduce --bytes 64 --budget 0 --peers libgomp";
    let of = |program: &str| page(&makes(program), line);
    let why = "not measured: libgomp passive, gcc 0.0 of 64 B: no figure: figure 64 fast: a time \
               is not a number";
    assert!(of(&format!("{NAMED}\necho figure 64 fast")).contains(why));
    let why = "the program printed figures of [8] instead of [64] bytes";
    assert!(of(&format!("{NAMED}\necho figure 8 1.0")).contains(why));
    let why = "not measured: libgomp: the program does not name its compiler";
    assert!(of("echo hello").contains(why));
    let why = "gcc 0.0 of 64 B: program failed (exit status: 7): no threads";
    assert!(of(&format!("{NAMED}\necho no threads >&2; exit 7")).contains(why));
}

fn launches(row: &Value) -> u64 {
    row["launches"].as_u64().expect("launches")
}

/// A program that takes 100 ns when it waits actively, and 300 ns passively. A machine that is busy
/// with other tests may need more time for a second launch.
#[test]
fn each_wait_policy_gets_launches() {
    let program = format!(
        "{NAMED}\ntest \"$1 $2\" = 'all_reduce 2' || exit 1\n\
         if test $OMP_WAIT_POLICY = active; then echo figure $3 100 100; fi\n\
         if test $OMP_WAIT_POLICY = passive; then echo figure $3 300; fi"
    );
    let folder = folder_with("gcc", &makes(&program));
    for (waiting, ns, blocks) in [("active", 100.0, 2), ("passive", 300.0, 1)] {
        let peer = format!("libgomp {waiting}, gcc 0.0");
        for bytes in [8, 64] {
            let rows_within = |budget: u32| -> Vec<Value> {
                let line = format!(
                    "bench collective all_reduce --pes 2 --bytes {bytes} --mode latency --peers libgomp \
                     --budget {budget} --json"
                );
                let figures = objects(&printed(folder.path().as_os_str(), &line));
                figures.into_iter().filter(|one| one["peer"] == peer.as_str()).collect()
            };
            let is_over_the_run = |rows: &Vec<Value>| rows.iter().map(launches).sum::<u64>() > 1;
            let rows = [1, 4, 16].into_iter().map(rows_within).find(is_over_the_run);
            for row in rows.expect("a second launch") {
                assert_eq!(keys(&row), FIGURE.into());
                assert_eq!(row["median_ns"], ns, "{row}");
                assert_eq!(row["reps"].as_u64(), Some(blocks * launches(&row)), "{row}");
                assert_eq!((&row["sync"], &row["waiting"]), (&"mine".into(), &waiting.into()));
                assert_eq!(
                    (&row["mode"], &row["fabric"]),
                    (&"throughput".into(), &"threads".into())
                );
                let in_transfers = row["c2c_ns"].as_f64().map(|c2c_ns| ns / c2c_ns);
                let ratio = row["ratio_to_limit"].as_f64();
                assert_eq!(ratio.is_some(), in_transfers.is_some(), "{row}");
            }
        }
    }
}

#[test]
fn missing_openmp_collective_is_reported_on_request() {
    let line = "bench collective scan --bytes 8 --budget 0";
    let asked = printed(OsStr::new(""), &format!("{line} --peers libgomp"));
    assert!(says(&asked, "not measured: libgomp: OpenMP has no scan: it has barrier"), "{asked}");
    assert!(!printed(OsStr::new(""), line).contains("libgomp"));
}

/// With the compilers in `PATH`. If they support OpenMP there are rows for it, and else the reason.
/// On a machine that is busy with other tests a launch may be killed because it takes too long. So
/// several runs are put together.
#[test]
fn collectives_are_timed_with_openmp() {
    let path = env::var_os("PATH").unwrap_or_default();
    for what in ["barrier", "collective reduce --bytes 8,4k", "collective all_reduce --bytes 8,4k"]
    {
        let sizes = if what == "barrier" { 1 } else { 2 };
        for pes in [2, 16] {
            let line = format!("bench {what} --pes {pes} --budget 0 --json --peers libgomp,libomp");
            // Each library is either absent or has times for each way to wait and each size.
            let is_complete = |figures: &[Value]| {
                ["libgomp", "libomp"].iter().all(|library| {
                    let timed = |waiting: &str| {
                        let peer = format!("{library} {waiting}");
                        let is_of = |one: &Value| {
                            one["peer"].as_str().is_some_and(|it| it.starts_with(&peer))
                        };
                        let times = figures.iter().filter(|one| one["median_ns"].is_number());
                        let times = times.filter(|one| is_of(one));
                        times.map(|one| one["bytes"].as_u64()).collect::<BTreeSet<_>>().len()
                            >= sizes
                    };
                    let is_absent = figures.iter().any(|one| one["peer"] == *library);
                    is_absent != (timed("active") && timed("passive"))
                })
            };
            let mut figures = Vec::new();
            let is_found = (0..5).any(|_| {
                figures.extend(objects(&printed(&path, &line)));
                is_complete(&figures)
            });
            assert!(is_found, "{line}: {figures:?}");
        }
    }
}
