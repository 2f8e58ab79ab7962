//! `consort bench openshmem`: with a library whose programs fail at exit, and without a second
//! library.

use std::{collections::BTreeSet, env};

use serde_json::Value;

use super::{FIGURE, consort_in, folder_with, keys};
use crate::shmem::library;
use consort_sandbox::commands::says;

/// Measures with this `oshrun`, and an `oshcc` that compiles by `consort cc`.
fn page(oshrun: &str, options: &str) -> String {
    library();
    let consort = env!("CARGO_BIN_EXE_consort");
    let script = format!("[ \"$1\" = --version ] && echo 'A Library 7.1' && exit\n{oshrun}");
    let launcher = folder_with("oshrun", &script.replace("CONSORT", consort));
    let compiler = folder_with("oshcc", &format!("exec {consort} cc \"$@\""));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = [launcher.path().into(), compiler.path().into()];
    let path = env::join_paths(folders.into_iter().chain(env::split_paths(&path)));
    let line = format!("bench openshmem --budget 0 {options}");
    let output = consort_in(&path.expect("folders without a colon"), &line);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn routines_are_timed_with_another_library() {
    // Each library is launched once. If the cores moved nearer or farther in between, the two
    // launches cannot be compared, and are repeated.
    let measure = || -> Vec<Value> {
        let text = page("exec CONSORT run \"$@\"", "--json");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let of_other = |figures: &[Value]| {
        figures.iter().filter(|figure| figure["peer"] == "A Library 7.1").count()
    };
    let mut tries = (0..10).map(|_| measure());
    let figures =
        tries.find(|figures| of_other(figures) > 1).expect("launches that count together");
    for figure in &figures {
        assert_eq!(keys(figure), BTreeSet::from(FIGURE));
        assert_eq!(
            (&figure["bench"], &figure["fabric"]),
            (&"openshmem".into(), &"processes".into())
        );
        assert!(figure["median_ns"].as_f64() > Some(0.0), "{figure}");
    }
    assert_eq!((figures.len(), of_other(&figures)), (2 * 16, 16));
}

#[test]
fn failing_library_is_reported() {
    let page_of = |oshrun| page(oshrun, "").replace('\n', " ");
    let late = page_of("CONSORT run \"$@\"; echo 'it has crashed' >&2; exit 9");
    let line = "A Library 7.1: 2 of 2 programs failed after their last line: oshrun failed (exit \
                status: 9): it has crashed";
    assert!(late.contains(line) && says(&late, "putmem_ct, 24 B"), "{late}");
    let early = page_of("echo time 3 barrier_all; echo why >&2; exit 9");
    let line = "no other library: the program of A Library 7.1 ended early: oshrun failed (exit \
                status: 9): why";
    assert!(early.contains(line), "{early}");
    let none = page("exit 1", "--peers none");
    assert!(says(&none, "no other library: not requested"), "{none}");
    assert!(none.lines().all(|line| line.chars().count() <= 100), "{none}");
}
