//! The examples in the help of each command: all parse, and those that take no time work.
//!
//! The help of a command names its subcommands below `Commands:` and its examples, one a line,
//! below `Examples:`. A line with `--help` at its end is parsed, and nothing is run.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use super::shmem;

/// The commands of which every example is run; the others measure or simulate for long.
const RUN: [&str; 4] = ["bench", "explain", "machines", "model"];

/// The command, which finds an `mpirun` only where it starts a program by one.
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

/// The lines of a section of a help text, without their indentation.
pub(super) fn section<'h>(help: &'h str, heading: &str) -> Vec<&'h str> {
    let lines = help.lines().skip_while(|line| *line != heading).skip(1);
    lines.map_while(|line| line.strip_prefix("  ")).collect()
}

/// The help texts of a command and of all below it, each with the words that ask for it.
fn helps(command: &[&str]) -> Vec<(String, String)> {
    let output = consort(&[command, &["--help"]].concat(), Path::new("."));
    assert!(output.status.success(), "{command:?}");
    let help = String::from_utf8(output.stdout).expect("text");
    // The description of a command may go on in a line that is indented further.
    let names = section(&help, "Commands:").into_iter().filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help");
    let below: Vec<_> = names.flat_map(|name| helps(&[command, &[name]].concat())).collect();
    [(command.join(" "), help)].into_iter().chain(below).collect()
}

/// The examples in the help of a command and of all below it.
pub(super) fn examples(command: &[&str]) -> Vec<String> {
    let of_line = |line: &str| line.split("  ").next().unwrap_or_default().to_owned();
    let of_help = |(_, help): (String, String)| {
        let lines: Vec<_> = section(&help, "Examples:").into_iter().map(of_line).collect();
        lines.into_iter().flat_map(|line| line.split(" && ").map(str::to_owned).collect::<Vec<_>>())
    };
    helps(command).into_iter().flat_map(of_help).collect()
}

/// The words of an example after `consort`, with the smallest budget where a budget is spent.
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
    let described = consort(&["machines", "cluster", "--source"], folder.path()).stdout;
    fs::write(folder.path().join("mine.toml"), described).expect("a description");
    fs::create_dir(folder.path().join("mpi")).expect("one's own folder");
    // What `run` is shown with.
    for program in ["program", "prog", "mpi/mpirun"].map(|name| folder.path().join(name)) {
        fs::write(&program, "#!/bin/sh\n").expect("one's own file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("one's own file");
    }
    shmem::library();
    let all = examples(&[]);
    assert!(all.len() > 50, "only {} examples are found", all.len());
    let mut complaints = Vec::new();
    for example in &all {
        let given: Vec<&str> = example.split(' ').skip(1).collect();
        let parsed = consort(&[&given[..], &["--help"]].concat(), folder.path());
        // One needs a compiler, and some an MPI.
        let needs_mpi = given.iter().any(|word| ["mpi", "mixed"].contains(word));
        let is_able = given[1..] != ["openshmem"] && !needs_mpi;
        let runs = RUN.contains(&given[0]) && is_able;
        let run = runs.then(|| consort(&words(example), folder.path()));
        for output in [Some(parsed), run].into_iter().flatten() {
            let said = String::from_utf8_lossy(&output.stderr);
            // In a short time every block may have been disturbed.
            if !output.status.success() && !said.contains("idle") {
                complaints.push(format!("`{example}`: {}: {said}", output.status));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn each_command_has_examples_that_fit_80_columns() {
    for (command, help) in helps(&[]) {
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{command}: {help}");
        let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_default();
        let long = examples.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "consort {command} --help");
        let needs_none = command.contains(' ') || help.contains("\nCommands:\n");
        assert!(
            needs_none || examples.starts_with("  consort "),
            "consort {command} --help: {help}"
        );
    }
}
