//! Interrupts: measuring ends with the current block, and the measurements so far are shown.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use consort_sandbox::commands::{NOTHING, SOME, SOON, interrupted};
use serde_json::Value;

/// The time after which a command has some results to show.
const FIRST: Duration = Duration::from_millis(1500);

/// Interrupts a command after it has measured for this time.
fn interrupted_after(time: Duration, folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    command.args(line.split_whitespace()).current_dir(folder);
    command.env("CONSORT_WISDOM", folder.join("wisdom.toml")).env("PATH", "");
    interrupted(&mut command, time)
}

#[test]
fn report_says_that_benchmark_was_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = "bench barrier --pes 3 --peers none --budget 600 --report report.html";
    let output = interrupted_after(FIRST, folder.path(), line);
    assert_eq!(output.status.code(), Some(130));
    let html = fs::read_to_string(folder.path().join("report.html")).expect("a report");
    assert!(html.contains("The measurement was interrupted.") && html.contains("<figure"));
}

#[test]
fn interrupted_benchmark_shows_partial_results() {
    let folder = tempfile::tempdir().expect("a folder");
    for line in [
        "bench barrier --pes 5 --budget 600 --json",
        "bench counting counted-all-to-all --pes 3 --budget 600 --json",
        "bench region --pes 3 --budget 600 --json",
        "bench fork-join nbody --threads 2 --budget 600 --json",
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

/// Commands that measure. Half a result is useless; a command shows nearly complete ones.
#[test]
fn all_commands_report_interrupts_alike() {
    for line in [
        "topo --budget 600",
        "topo --fabric processes --pes 2 --budget 600",
        "sync advise --section 20 --threads 2 --budget 600",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let Output { status, stdout, stderr } = interrupted_after(SOON, folder.path(), line);
        let complaint = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(130), "{line}: {complaint}");
        let expected = if stdout.is_empty() { NOTHING } else { SOME };
        assert!(complaint.contains(expected), "{line}: {complaint}");
    }
}
