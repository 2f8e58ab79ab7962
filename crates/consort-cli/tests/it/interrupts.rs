//! Interrupts: measuring ends with the present block, and what was measured is shown.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// The time from the first handler of an interrupt to the last.
const SOON: Duration = Duration::from_millis(100);
/// The time in which a command that shows results has some.
const FIRST: Duration = Duration::from_millis(1500);
/// What is said with results, and without.
const SOME: &str = "interrupted: this is what there was until then";
const NOTHING: &str = "interrupted: there was nothing to show until then";
/// Much less than the budgets below, much more than a block takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn signalled(child: &Child) {
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
}

/// Waits until a command handles interrupts: it measures from then on.
fn await_handler(child: &Child) {
    let path = format!("/proc/{}/status", child.id());
    let is_handled = || {
        let status = fs::read_to_string(&path).expect("it runs");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
        u64::from_str_radix(mask.trim(), 16).expect("a number") & 1 << 1 != 0
    };
    while !is_handled() {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Interrupts a command at its start.
fn interrupted(line: &str) -> Output {
    interrupted_after(SOON, tempfile::tempdir().expect("a folder").path(), line)
}

/// Interrupts a command when it has measured for so long.
fn interrupted_after(time: Duration, folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    command.args(line.split_whitespace()).current_dir(folder);
    command.env("CONSORT_WISDOM", folder.join("wisdom.toml")).env("PATH", "");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the command starts");
    await_handler(&child);
    thread::sleep(time);
    let begun = Instant::now();
    signalled(&child);
    let output = child.wait_with_output().expect("the command ends");
    assert!(begun.elapsed() < LIMIT, "{line}: {:?}", begun.elapsed());
    output
}

#[test]
fn an_interrupted_benchmark_has_a_report_that_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = "bench barrier --pes 3 --peers none --budget 600 --report report.html";
    let output = interrupted_after(FIRST, folder.path(), line);
    assert_eq!(output.status.code(), Some(130));
    let html = fs::read_to_string(folder.path().join("report.html")).expect("a report");
    assert!(html.contains("It was interrupted before its end.") && html.contains("<figure"));
}

#[test]
fn an_interrupted_benchmark_shows_what_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    for line in [
        "bench barrier --pes 5 --budget 600 --json",
        "bench counted-all-to-all --pes 3 --budget 600 --json",
        "bench look-up --budget 600 --json",
        "bench overlap --bytes 8 --pes 2 --budget 600 --json",
        "bench region --pes 3 --budget 600 --json",
        "bench sharing --pes 3 --budget 600 --json",
        "bench lock --threads 2 --budget 600 --json",
    ] {
        let Output { status, stdout, stderr } = interrupted_after(FIRST, folder.path(), line);
        let complaint = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(130), "{line}: {complaint}");
        assert!(complaint.contains(SOME), "{line}: {complaint}");
        let text = String::from_utf8(stdout).expect("text");
        assert!(text.lines().count() > 0, "{line}: {complaint}");
        for object in text.lines() {
            let object: Value = serde_json::from_str(object).expect("JSON");
            assert!(object["bench"].is_string(), "{object}");
            assert_eq!(object["context"]["interrupted"], true, "{object}");
        }
    }
}

#[test]
fn an_interrupted_reproduction_shows_the_claims_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    command.args(["reproduce", "T7", "H1", "--budget", "1200"]).current_dir(&folder);
    command.env("CONSORT_WISDOM", folder.path().join("wisdom.toml"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("the command starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    // The verdict ends a claim's table.
    let mut next = || lines.next().map(|line| line.expect("text"));
    while !next().expect("the first claim is shown").starts_with("Simulated: ") {}
    let begun = Instant::now();
    signalled(&child);
    assert_eq!(child.wait().expect("the command ends").code(), Some(130));
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    while let Some(line) = next() {
        assert!(!line.starts_with("H1: "), "half a claim is none: {line}");
    }
}

#[test]
fn a_reproduction_that_is_interrupted_in_its_only_claim_shows_nothing() {
    let Output { status, stdout, stderr } = interrupted("reproduce H1 --pes 3 --budget 600");
    let complaint = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(130), "{complaint}");
    assert!(complaint.contains(NOTHING), "{complaint}");
    assert!(stdout.is_empty(), "half a claim is none");
}

/// Whatever measures or simulates, half of which is nothing. What was nearly done is shown.
#[test]
fn an_interrupt_is_told_alike_by_all() {
    for line in [
        "topo --budget 600",
        "calibrate --budget 600 --output ./host.toml",
        "topo --fabric processes --pes 2 --budget 600",
        "sync advise --section 20 --threads 2 --budget 600",
        "sim broadcast --machine cluster --pes 1024 --bytes 4M --calls 1000000 --algorithm flat",
    ] {
        let Output { status, stdout, stderr } = interrupted(line);
        let complaint = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(130), "{line}: {complaint}");
        let expected = if stdout.is_empty() { NOTHING } else { SOME };
        assert!(complaint.contains(expected), "{line}: {complaint}");
    }
}

#[test]
fn an_interrupted_prediction_ends_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    command.args(["calibrate", "--budget", "0.2", "--output", "./mine.toml"]).current_dir(&folder);
    assert!(command.output().expect("the command ends").status.success());
    let line = "predict --machine ./mine.toml --bytes 8 --budget 600";
    let Output { status, stderr, .. } = interrupted_after(SOON, folder.path(), line);
    let complaint = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(130), "{complaint}");
    assert!([SOME, NOTHING].iter().any(|said| complaint.contains(said)), "{complaint}");
}

/// Of several simulations those that are over are shown.
#[test]
fn an_interrupted_simulation_shows_those_before() {
    let line = "sim barrier --pes 2 --param radix=2 --json --calls 1000000 --algorithm flat \
                --algorithm dissemination --algorithm central --algorithm knomial";
    let Output { status, stdout, stderr } = interrupted(line);
    let complaint = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(130), "{complaint}");
    let shown = String::from_utf8(stdout).expect("text");
    let expected = if shown.is_empty() { NOTHING } else { SOME };
    assert!(complaint.contains(expected), "{complaint}");
    assert!(shown.lines().count() < 4, "{shown}");
}
