//! `consort profile`: the profile of a program, as text and as JSON, and its trace.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use consort_sandbox::built;

const PROGRAM: &str = env!("CARGO_BIN_EXE_consort");
/// The number of PEs of the profiled program.
const PES: usize = 4;

/// Returns the profiled program, in which each PE makes a barrier and an all-reduce.
fn first() -> PathBuf {
    built(PROGRAM, "examples/first")
}

/// Returns the words that run it as processes.
fn as_processes() -> Vec<String> {
    let words = [PROGRAM, "run", "-n", "4"].map(str::to_owned);
    words.into_iter().chain([first().display().to_string()]).collect()
}

/// Profiles a program.
fn profile(folder: &Path, options: &[&str], program: &[String]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).arg("profile").args(options).args(program);
    command.output().expect("the command starts")
}

#[test]
fn first_screen_answers_whether_it_is_worth_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = profile(folder.path(), &[], &[first().display().to_string()]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let (of_program, text) = text.split_once("Job: 4 PEs (threads)").expect("a job");
    assert!(of_program.contains("PE 0: 6"), "the program's output comes first: {of_program}");
    let screen: String = text.split_inclusive('\n').take(20).collect();
    for answer in
        ["computing", "waiting in calls", "More even work", "Faster calls", "not tuned", "a call"]
    {
        assert!(screen.contains(answer), "no `{answer}` in\n{screen}");
    }
    for below in ["barrier()", "examples/first.rs:", "algorithm", "chosen by", "sleeps"] {
        assert!(text.contains(below), "no `{below}` in\n{text}");
    }
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|columns| columns <= 80), "{text}");
}

#[test]
fn times_of_a_pe_add_up_on_threads_and_processes() {
    for (fabric, program) in
        [("threads", vec![first().display().to_string()]), ("processes", as_processes())]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let output = profile(folder.path(), &["--json=profile.json"], &program);
        assert!(output.status.success(), "{output:?}");
        let text = fs::read_to_string(folder.path().join("profile.json")).expect("a file");
        let job: Value = serde_json::from_str(&text).expect("one object");
        assert_eq!((&job["fabric"], &job["jobs"]), (&fabric.into(), &1.into()), "{job}");
        assert_eq!(job["incomplete"].as_array().map(Vec::len), Some(0), "{job}");
        let pes = job["by_pe"].as_array().expect("PEs");
        assert_eq!(pes.len(), PES, "{job}");
        for pe in pes {
            let ns = |key: &str| pe[key].as_u64().expect("nanoseconds");
            let parts = ns("computing_ns") + ns("in_calls_ns") + ns("waiting_elsewhere_ns");
            assert_eq!(ns("ns"), parts, "{fabric}: {job}");
            assert!(ns("waiting_ns") <= ns("in_calls_ns"), "{fabric}: {job}");
        }
        for collective in ["barrier", "all_reduce"] {
            let mut calls = job["calls"].as_array().expect("calls").iter();
            let call = calls.find(|call| call["collective"] == collective);
            let call = call.unwrap_or_else(|| panic!("no {collective}: {job}"));
            assert_eq!((&call["calls"], &call["tuning"]), (&1.into(), &"not_tuned".into()));
            assert_eq!(call["by_pe"].as_array().map(Vec::len), Some(PES), "{job}");
        }
    }
}

/// PEs that are processes write to the same file.
#[test]
fn trace_is_json_with_the_calls_of_each_pe() {
    for program in [vec![first().display().to_string()], as_processes()] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.json");
        for _again in 0..2 {
            let mut command = Command::new(&program[0]);
            let output = command.args(&program[1..]).env("CONSORT_TRACE", &path).output();
            let output = output.expect("the program starts");
            assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
            let trace = fs::read(&path).expect("a trace");
            let trace: Value = serde_json::from_slice(&trace).expect("JSON");
            let events = trace["traceEvents"].as_array().expect("events");
            for (pe, name) in (0..PES).flat_map(|pe| [(pe, "barrier"), (pe, "all_reduce")]) {
                let is_its = |event: &&Value| {
                    let is_named = event["name"].as_str().is_some_and(|it| it.starts_with(name));
                    event["tid"] == pe && event["ph"] == "X" && is_named
                };
                let calls: Vec<&Value> = events.iter().filter(is_its).collect();
                assert_eq!(calls.len(), 1, "{name} of PE {pe}: {trace}");
                let number = |value: &Value| value.as_f64().expect("a number");
                let (took_us, waiting) = (&calls[0]["dur"], &calls[0]["args"]["waiting_ns"]);
                assert!(number(waiting) <= 1e3 * number(took_us) + 1.0, "{trace}");
            }
        }
    }
}

#[test]
fn status_is_that_of_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = profile(folder.path(), &[], &["true".into()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("made no calls of Consort"), "{said}");
    let script = format!("{}; exit 7", first().display());
    let output = profile(folder.path(), &["--"], &["sh".into(), "-c".into(), script]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let output = profile(folder.path(), &[], &["/nowhere/program".into()]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot run /nowhere/program"), "{said}");
}

/// The program ends in an orderly way, as it would without the command, and then the profile is
/// shown.
#[test]
fn request_to_terminate_is_passed_on_to_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "trap '{}; exit 7' TERM; echo ready; for i in $(seq 600); do sleep 0.05; done",
        first().display()
    );
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder.path()).args(["profile", "sh", "-c", &script]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the command starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "ready");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(7), "{rest:?}");
    assert!(rest.iter().any(|line| line.starts_with("Job: 4 PEs (threads)")), "{rest:?}");
}
