//! The example `own_algorithm`: a command with one more algorithm.

use std::process::Command;

use consort_sandbox::built;

use consort_sandbox::commands::says;

fn example() -> Command {
    let mut command = Command::new(built(env!("CARGO_BIN_EXE_consort"), "examples/own_algorithm"));
    command.env("CONSORT_WISDOM", "none.toml");
    command
}

fn output(arguments: &[&str]) -> (bool, String) {
    let output = example().args(arguments).output().expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).expect("text"))
}

/// Returns whether a table has a row of `line`.
fn has_line(text: &str) -> bool {
    text.lines().any(|row| row.split_whitespace().next() == Some("line"))
}

#[test]
fn own_algorithm_is_explained_and_timed_with_others() {
    let (done, text) = output(&["explain", "all_reduce", "--bytes", "8", "--pes", "2", "--all"]);
    assert!(done && has_line(&text), "{text}");
    let usual =
        ["bench", "collective", "all_reduce", "--bytes", "8", "--pes", "2", "--budget", "1"];
    let (done, text) = output(&[&usual[..], &["--all-algorithms"]].concat());
    assert!(done && has_line(&text) && text.lines().all(|line| line.chars().count() <= 100));
    // A composed algorithm is named by its parts, and of equivalent candidates, one is timed.
    assert!(says(&text, "reduce_broadcast(flat, knomial(radix=2))"), "{text}");
    assert!(!text.contains("knomial(radix=8)"), "{text}");
    let (done, text) = output(&[&usual[..], &["--algorithm", "line"]].concat());
    assert!(done && has_line(&text), "{text}");
    let (done, text) = output(&[&usual[..], &["--algorithm", "line(radix=2)"]].concat());
    assert!(!done && says(&text, "line has no parameter `radix`"), "{text}");
    let (done, text) = output(&[&usual[..], &["--algorithm", "lines"]].concat());
    assert!(!done && says(&text, "no algorithm `lines`") && says(&text, ", line"), "{text}");
}
