//! Wrong usage: status 2, and a message that says what to do instead. Help: examples.

use std::process::{Command, Output};

use consort_sandbox::commands::ends;

fn consort(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_consort"))
        .args(words.split_whitespace())
        .env("CONSORT_WISDOM", "/nowhere/wisdom.toml")
        .output()
        .expect("the command starts")
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_consort");

#[track_caller]
fn refused(words: &str, advice: &str) {
    ends(PROGRAM, 2, words, advice);
}

#[test]
fn invalid_size_is_refused() {
    for bad in ["banana", "8x", "-1", "1.5k", "k"] {
        refused(&format!("tune --bytes={bad}"), "8KiB");
        refused(&format!("explain reduce --bytes={bad}"), "8KiB");
    }
    refused("tune --bytes 12", "a multiple of 8");
    refused("tune --bytes 8,0", "a multiple of 8");
    refused("tune --bytes 64G", "at most 1 GiB");
}

#[test]
fn invalid_team_size_is_refused() {
    for bad in ["0", "100000", "two", "-2", "2,0"] {
        refused(&format!("tune --pes={bad}"), "use 1 to 1024");
    }
    refused("explain barrier --pes 0", "use 1 to 1024");
    refused("explain barrier --pes 1025", "use 1 to 1024");
}

#[test]
fn misspelt_name_is_refused_with_a_suggestion() {
    refused("tune --collective shuffle", "use barrier, broadcast");
    refused("explain shuffle", "use barrier, broadcast");
    for (meant, name) in [
        ("all_reduce", "allreduce"),
        ("all_reduce", "all_reduc"),
        ("broadcast", "bcast"),
        ("all_gather", "allgather"),
        ("all_to_all", "alltoall"),
        ("exclusive_scan", "exscan"),
        ("reduce_scatter", "reduce_scatter_block"),
    ] {
        for words in
            ["explain", "bench collective", "tune --collective", "wisdom show --collective"]
        {
            refused(&format!("{words} {name}"), &format!("did you mean {meant}?"));
        }
    }
    refused("tune --sync tight", "use strict, loose, mine");
    refused("explain reduce --sync mine/some", "none, mine, all");
    refused("tune --rigour hard", "use estimate, measure, patient, exhaustive");
    refused("tune --budget soon", "--budget");
    refused("tune --sample 3", "--check");
    refused("tune --check --retune", "--retune");
    refused("tune --record calls.toml --pes 2", "--record");
    refused("wisdom forget", "unrecognized subcommand");
    refused("attune", "tune");
}

#[test]
fn printed_names_are_accepted() {
    for words in [
        "explain all-reduce",
        "bench collective all-reduce --pes 2 --bytes 8 --budget 0 --peers none",
        "bench collective broadcast --algorithm shared(chunk=16K) --pes 2 --bytes 64k --budget 0 --peers none",
    ] {
        let output = consort(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}: {said}");
    }
}

/// The option takes a file only after a `=`, so that it takes no other argument.
#[test]
fn json_takes_no_other_argument() {
    refused(
        "topo --json out.json",
        "unexpected out.json after --json: write --json=out.json for a file",
    );
    refused(
        "bench barrier --json figures",
        "unexpected figures after --json: write --json=figures for a file",
    );
    refused("topo --json -", "unexpected - after --json: write --json=- for a file");
}

/// The output could not be written.
#[test]
fn a_full_device_is_an_error() {
    for words in ["topo --budget 0", "explain barrier --pes 2"] {
        let full = std::fs::File::create("/dev/full").expect("the device");
        let output = Command::new(env!("CARGO_BIN_EXE_consort"))
            .args(words.split_whitespace())
            .stdout(full)
            .output()
            .expect("the command starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert_eq!(said.lines().count(), 1, "{words}: {said}");
        assert!(said.starts_with("error: cannot write to standard output: No space"), "{said}");
    }
}

#[test]
fn files_are_tried_before_anything_is_measured() {
    for words in [
        "bench barrier",
        "bench region",
        "tune",
        "tune --check",
        "topo",
        "explain barrier",
        "wisdom show",
    ] {
        ends(
            PROGRAM,
            1,
            &format!("{words} --json=/nowhere/out"),
            "cannot write /nowhere/out: No such",
        );
        ends(PROGRAM, 1, &format!("{words} --json=/"), "cannot write /: it is a directory");
    }
    for words in ["bench barrier", "tune", "topo"] {
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
        ends(PROGRAM, 1, &format!("{words} --report /"), "cannot write /: it is a directory");
    }
}

#[test]
fn help_lists_exit_statuses() {
    let help = String::from_utf8_lossy(&consort("--help").stdout).into_owned();
    assert!(help.contains("Exit status: 0 success, 1 an error, 2 wrong usage"), "{help}");
}
