//! The examples in the help of each command: all parse, and the fast ones work.
//!
//! The help of a command names its subcommands below `Commands:` and its examples, one per line,
//! below `Examples:`. A line with `--help` at its end is only parsed.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use consort_sandbox::commands::{check_helps, check_screens, examples};

use super::shmem;

/// The commands for which every example is run; the others measure or simulate for a long time.
const RUN: [&str; 2] = ["bench", "explain"];

/// Runs the command, which finds an `mpirun` only if the example needs one.
fn consort(words: &[&str], folder: &Path) -> Output {
    let path = if words.contains(&"--hosts") { folder.join("mpi") } else { PathBuf::new() };
    Command::new(env!("CARGO_BIN_EXE_consort"))
        .args(words)
        .current_dir(folder)
        .env("CONSORT_WISDOM", folder.join("wisdom.toml"))
        .env("PATH", path)
        .env("CONSORT_CC", "/bin/true")
        .env("CONSORT_CXX", "/bin/true")
        .output()
        .expect("the command starts")
}

/// Returns the words of an example after `consort`, with the smallest budget if it has one.
fn words(example: &str) -> Vec<&str> {
    let mut words: Vec<&str> = example.split(' ').skip(1).collect();
    if let Some(at) = words.iter().position(|word| *word == "--budget") {
        words.drain(at..at + 2);
    }
    if words[0] == "bench" {
        words.extend(["--budget", "0"]);
    }
    words
}

#[test]
fn examples_parse_and_work() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("mpi")).expect("one's own folder");
    // The programs in the examples of `run` and `profile`.
    let programs = ["program", "prog", "solver", "consort", "mpi/mpirun"];
    for program in programs.map(|name| folder.path().join(name)) {
        fs::write(&program, "#!/bin/sh\n").expect("one's own file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("one's own file");
    }
    shmem::library();
    let all = examples(env!("CARGO_BIN_EXE_consort"), &[]);
    assert!(all.len() > 40, "only {} examples are found", all.len());
    let mut complaints = Vec::new();
    for example in &all {
        let given: Vec<&str> = example.split(' ').skip(1).collect();
        let parsed = consort(&[&given[..], &["--help"]].concat(), folder.path());
        // One example needs a compiler, and some need an MPI.
        let needs_mpi = given.iter().any(|word| ["mpi", "mixed"].contains(word));
        let is_able = given[1..] != ["openshmem"] && !needs_mpi;
        let runs = RUN.contains(&given[0]) && is_able;
        let run = runs.then(|| consort(&words(example), folder.path()));
        for output in [Some(parsed), run].into_iter().flatten() {
            let said = String::from_utf8_lossy(&output.stderr);
            // In such a short time, every block may have been disturbed. `profile` runs its program,
            // which makes no calls.
            let is_fine = ["idle", "made no calls"].iter().any(|part| said.contains(part));
            if !output.status.success() && !is_fine {
                complaints.push(format!("`{example}`: {}: {said}", output.status));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn each_command_has_examples_that_fit_80_columns() {
    check_helps(env!("CARGO_BIN_EXE_consort"), "consort");
}

#[test]
fn short_help_of_each_command_fits_a_screen() {
    check_screens(env!("CARGO_BIN_EXE_consort"));
}
