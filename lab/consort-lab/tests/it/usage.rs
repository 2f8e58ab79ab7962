//! Tests invalid usage: the status is 2, and a message says what would be valid. Also tests the
//! examples of the help.

use std::process::{Command, Output};

use consort_sandbox::commands::{check_helps, ends, examples};

/// The commands whose examples run here. Documents and other tests run the rest, or the rest takes
/// long.
const RUN: [&str; 2] = ["machines", "model"];

fn lab(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_consort-lab"))
        .args(words.split_whitespace())
        .env("CONSORT_WISDOM", "/nowhere/wisdom.toml")
        .output()
        .expect("the command starts")
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_consort-lab");

#[track_caller]
fn refused(words: &str, advice: &str) {
    ends(PROGRAM, 2, words, advice);
}

#[test]
fn misspelt_names_get_a_suggestion() {
    refused("sim allreduce", "did you mean all_reduce?");
    refused("model allreduce", "did you mean all_reduce?");
    refused("model barrier --machine clovertown", "clovertown-x2");
    refused("machines --source", "<NAME>");
    refused("machines scc --source --json", "cannot be used with");
    refused("reproduce --json out.jsonl", "write --json=out.jsonl for a file");
    refused("reproduce --json out", "write --json=out for a file");
    refused(
        "machines --json out.json",
        "unexpected out.json after --json: write --json=out.json for a file",
    );
    let output = lab("machines --json scc");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("\"name\":\"scc\""), "{said}");
}

#[test]
fn printed_names_are_accepted() {
    for words in [
        "sim all-reduce --pes 4 --lines 1",
        "sim broadcast --algorithm oc-bcast(k=7,chunk=3K) --lines 1",
    ] {
        let output = lab(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}: {said}");
    }
}

/// The output could not be written.
#[test]
fn full_device_is_an_error() {
    for words in ["machines", "machines scc", "sim barrier --pes 2"] {
        let full = std::fs::File::create("/dev/full").expect("the device");
        let output = Command::new(env!("CARGO_BIN_EXE_consort-lab"))
            .args(words.split_whitespace())
            .stdout(full)
            .output()
            .expect("the command starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert!(said.starts_with("error: cannot write to standard output: No space"), "{said}");
    }
}

#[test]
fn output_files_are_checked_before_simulating() {
    for words in ["predict", "reproduce H6", "machines", "model barrier", "sim broadcast"] {
        ends(
            PROGRAM,
            1,
            &format!("{words} --json=/nowhere/out"),
            "cannot write /nowhere/out: No such",
        );
        ends(PROGRAM, 1, &format!("{words} --json=/"), "cannot write /: it is a directory");
    }
    for words in ["predict", "reproduce --all", "sim barrier"] {
        ends(
            PROGRAM,
            1,
            &format!("{words} --csv=/nowhere/out"),
            "cannot write /nowhere/out: No such",
        );
        ends(
            PROGRAM,
            1,
            &format!("{words} --report /nowhere/out"),
            "cannot write /nowhere/out: No such",
        );
    }
    for option in ["trace", "picture"] {
        let words = format!("sim broadcast --algorithm flat --{option} /nowhere/out");
        ends(PROGRAM, 1, &words, "cannot write /nowhere/out: No such");
    }
}

#[test]
fn refused_reproductions_and_predictions_say_why() {
    for (line, part) in [
        ("predict --fabric mixed", "only threads and mpi"),
        ("predict --fabric mpi --sync mine/all", "which uses mine/all"),
        ("predict --fabric mpi --machine scc", "--machine cannot be used with --fabric mpi"),
        ("reproduce H9", "T12, T13, T14, T15, G1, G4, G5, G6, G7, G9, G10, F7, F8, P3, P4, P5"),
        ("reproduce T2 --pes 8", "48 cores"),
        ("reproduce H6 --pes 2", "3 to 1024"),
        ("reproduce P3 --pes 3", "two PEs"),
        ("reproduce --pes 8", "needs named claims"),
        ("reproduce H6 --all", "cannot be used with"),
        ("reproduce --all --pes 8", "--pes: "),
    ] {
        refused(line, part);
    }
}

#[test]
fn bad_simulation_options_are_refused() {
    for bad in ["0", "banana", "-1", "1,0", "1.5"] {
        refused(&format!("sim broadcast --lines={bad}"), "invalid number of lines");
    }
    refused("sim broadcast --bytes banana", "8KiB");
    refused("sim broadcast --bytes 8,0", "invalid size 0: use 1 byte or more");
    refused("sim broadcast --bytes 8 --lines 1", "cannot be used with");
    refused("sim broadcast --sweep --lines 1", "cannot be used with");
    refused("sim broadcast --sweep --trace x", "cannot be used with");
    refused("sim broadcast --sweep --picture x.svg", "cannot be used with");
    refused("sim broadcast --all-algorithms --algorithm flat", "cannot be used with");
    refused("sim broadcast --algorithm oc_bcast(k)", "NAME(PARAMETER=NUMBER,...)");
    refused("sim broadcast --param k", "k=7");
    refused("sim broadcast --param k=seven", "k=7");
    refused("sim broadcast --pes 0", "0 is not in 1..");
    refused("sim broadcast --calls 0", "0 is not in 1..");
    refused("sim broadcast --mode fast", "throughput, latency");
    refused("sim broadcast --sync tight", "use strict, loose, mine");
    refused("sim shuffle", "use barrier, broadcast");
    refused("sim", "<WHAT>");
}

#[test]
fn each_command_has_examples_that_fit_80_columns() {
    check_helps(env!("CARGO_BIN_EXE_consort-lab"), "consort-lab");
}

#[test]
fn examples_parse_and_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let described = lab("machines cluster --source").stdout;
    std::fs::write(folder.path().join("mine.toml"), described).expect("a description");
    let all = examples(env!("CARGO_BIN_EXE_consort-lab"), &[]);
    assert!(all.len() > 25, "only {} examples are found", all.len());
    for example in &all {
        let words: Vec<&str> = example.split(' ').skip(1).collect();
        let helped = [&words[..], &["--help"]].concat();
        let runs = RUN.contains(&words[0]).then_some(words);
        for words in [Some(helped), runs].into_iter().flatten() {
            let mut command = Command::new(env!("CARGO_BIN_EXE_consort-lab"));
            let output = command.args(&words).current_dir(&folder).output();
            let output = output.expect("the command starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "`{example}`: {said}");
        }
    }
}
