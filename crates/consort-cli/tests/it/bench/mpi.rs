//! `--fabric mpi` of `bench` and `tune`, without an MPI, or with one whose launcher fails.

use std::ffi::OsStr;

use super::{consort_in, folder_with};

const BENCH: &str = "bench point-to-point put-rate --fabric mpi --budget 0 --peers none";
const BARRIER: &str = "bench barrier --fabric mpi --pes 2 --budget 0 --peers none";
const TUNE: &str = "tune --fabric mpi --pes 2 --collective barrier --budget 0.5";

/// Returns the command's complaint with the programs of these folders, in one line.
fn complaint(path: &OsStr, line: &str) -> String {
    ended(path, line, 1)
}

fn ended(path: &OsStr, line: &str, status: i32) -> String {
    let output = consort_in(path, line);
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(status), "{line}: {said}");
    said.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// As `complaint`, with a stand-in for Open MPI's launcher that runs this script instead.
fn with_launcher(script: &str, line: &str) -> String {
    let version = "if test \"$1\" = --version; then echo 'mpirun (Open MPI) 4.1.4'; exit; fi";
    let launcher = folder_with("mpirun", &format!("{version}\n{script}"));
    // The compiler is not used.
    let compiler = folder_with("mpicc", "exit 1");
    let folders = [launcher.path(), compiler.path()];
    complaint(&std::env::join_paths(folders).expect("folders without a colon"), line)
}

#[test]
fn missing_launcher_error_gives_advice() {
    for line in [BENCH, TUNE] {
        let said = complaint(OsStr::new(""), line);
        let why = "--fabric mpi starts them by the mpirun in PATH: no mpirun found: install an \
                   MPI";
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn dead_session_ends_the_measurement() {
    for line in [BENCH, TUNE] {
        let said = with_launcher("echo 'rank 1 was killed' >&2; exit 137", line);
        assert!(said.contains("mpirun failed (exit status: 137): rank 1 was killed"), "{said}");
        let said = with_launcher("kill -9 $$", line);
        assert!(said.contains("mpirun failed (signal: 9 (SIGKILL))"), "{said}");
    }
}

#[test]
fn error_of_all_processes_is_shown_once() {
    let alike = "for rank in 0 1 2; do echo 'error: no network' >&2; done";
    let said = with_launcher(&format!("{alike}; echo 'error: no memory' >&2; exit 1"), BENCH);
    assert!(said.contains("(exit status: 1): error: no network error: no memory"), "{said}");
}

#[test]
fn session_without_outcome_is_an_error() {
    for line in [BENCH, TUNE] {
        let said = with_launcher("echo hello", line);
        assert!(said.contains("the processes printed no result"), "{said}");
    }
}

#[test]
fn impossible_shapes_are_refused_before_start() {
    for (line, why) in [
        ("bench point-to-point put-signal --fabric mpi:2", "put-signal is between 2 processes"),
        ("bench barrier --fabric mpi:2 --pes 3", "--pes 3: with 2 PEs a process"),
        ("tune --fabric mpi:2 --pes 3", "--pes 3: with 2 PEs a process"),
        ("tune --fabric mpi", "give the number of PEs"),
    ] {
        let said = ended(OsStr::new(""), line, 2);
        assert!(said.contains(why), "{line}: {said}");
    }
}

/// Each process reports the number of processes, because none of them may begin.
#[test]
fn wrong_process_count_is_a_one_line_error() {
    let counted = "echo '{\"Started\":3}'; echo '{\"Started\":3}'";
    for (line, right) in [
        ("topo --fabric mpi:2 --pes 4", "2 processes of 2 PEs, but mpirun started 3: use --pes 6"),
        (BARRIER, "2 processes of 1 PEs, but mpirun started 3: use --pes 3"),
    ] {
        let said = with_launcher(counted, line);
        assert!(said.contains(right), "{line}: {said}");
    }
}
