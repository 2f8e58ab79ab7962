//! Tests interrupts: an interrupted simulation or experiment ends in an orderly way, and shows the
//! results that are complete.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
    time::Instant,
};

use consort_sandbox::commands::{LIMIT, NOTHING, SOME, SOON, interrupt, interrupted};

/// Interrupts a command at its start.
fn interrupted_in(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort-lab"));
    command.args(line.split_whitespace()).current_dir(folder);
    command.env("CONSORT_WISDOM", folder.join("wisdom.toml")).env("PATH", "");
    interrupted(&mut command, SOON)
}

#[test]
fn interrupted_reproduction_shows_finished_claims() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort-lab"));
    command.args(["reproduce", "T7", "H1", "--budget", "1200"]).current_dir(&folder);
    command.env("CONSORT_WISDOM", folder.path().join("wisdom.toml"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("the command starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    // The verdict ends a claim's table.
    let mut next = || lines.next().map(|line| line.expect("text"));
    while !next().expect("the first claim is shown").starts_with("Simulated: ") {}
    let begun = Instant::now();
    interrupt(&child);
    assert_eq!(child.wait().expect("the command ends").code(), Some(130));
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    while let Some(line) = next() {
        assert!(!line.starts_with("H1: "), "half a claim is not shown: {line}");
    }
}

#[test]
fn reproduction_interrupted_in_its_only_claim_shows_nothing() {
    let Output { status, stdout, stderr } =
        interrupted_in(Path::new("."), "reproduce H1 --pes 3 --budget 600");
    let complaint = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(130), "{complaint}");
    assert!(complaint.contains(NOTHING), "{complaint}");
    assert!(stdout.is_empty(), "half a claim is not shown");
}

/// A command shows only complete results.
#[test]
fn commands_end_the_same_way_when_interrupted() {
    for line in [
        "calibrate --budget 600 --output ./host.toml",
        "sim broadcast --machine cluster --pes 1024 --bytes 4M --calls 1000000 --algorithm flat",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let Output { status, stdout, stderr } = interrupted_in(folder.path(), line);
        let complaint = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(130), "{line}: {complaint}");
        let expected = if stdout.is_empty() { NOTHING } else { SOME };
        assert!(complaint.contains(expected), "{line}: {complaint}");
    }
}

#[test]
fn interrupted_prediction_exits_like_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort-lab"));
    command.args(["calibrate", "--budget", "0.2", "--output", "./mine.toml"]).current_dir(&folder);
    assert!(command.output().expect("the command ends").status.success());
    let line = "predict --machine ./mine.toml --bytes 8 --budget 600";
    let Output { status, stderr, .. } = interrupted_in(folder.path(), line);
    let complaint = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(130), "{complaint}");
    assert!([SOME, NOTHING].iter().any(|said| complaint.contains(said)), "{complaint}");
}

/// Of several simulations, the finished ones are shown.
#[test]
fn interrupted_simulation_shows_finished_ones() {
    let line = "sim barrier --pes 2 --param radix=2 --json --calls 1000000 --algorithm flat \
                --algorithm dissemination --algorithm central --algorithm knomial";
    let Output { status, stdout, stderr } = interrupted_in(Path::new("."), line);
    let complaint = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(130), "{complaint}");
    let shown = String::from_utf8(stdout).expect("text");
    let expected = if shown.is_empty() { NOTHING } else { SOME };
    assert!(complaint.contains(expected), "{complaint}");
    assert!(shown.lines().count() < 4, "{shown}");
}
