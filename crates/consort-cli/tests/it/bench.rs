//! `consort bench`, from the outside, with the smallest budgets.

mod critical_sections;
mod fork_join;
mod mpi;
mod openmp;
mod openshmem;
mod point_to_point;
mod processes;
mod region;

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

use consort_sandbox::commands::says;

/// Runs the command in an empty folder, with separate wisdom and no other programs.
fn consort(line: &str) -> Output {
    consort_in(OsStr::new(""), line)
}

/// Returns a folder with a shell script.
fn folder_with(name: &str, script: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join(name);
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    folder
}

/// Runs the command in an empty folder, with separate wisdom and the programs of these folders.
fn consort_in(path: &OsStr, line: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    command.args(line.split_whitespace()).current_dir(&folder);
    command.env("XDG_CONFIG_HOME", folder.path()).env("PATH", path);
    command.output().expect("the command starts")
}

fn stdout(line: &str) -> String {
    let output = consort(line);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {complaint}");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the objects that a command prints, one per line.
fn objects(line: &str) -> Vec<Value> {
    stdout(line).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

const FIGURE: [&str; 27] = [
    "bench",
    "fabric",
    "launches",
    "pes",
    "team",
    "algorithm",
    "params",
    "sync",
    "bytes",
    "mode",
    "arrival",
    "placement",
    "waiting",
    "median_ns",
    "ci95_ns",
    "p99_ns",
    "mean_ns",
    "busy_cores",
    "reps",
    "peer",
    "ratio_to_limit",
    "c2c_ns",
    "chosen",
    "c2c_class",
    "memcpy_gbps",
    "pull_gbps",
    "context",
];

/// The keys that describe the context of each object.
const CONTEXT: [&str; 7] = ["machine", "date", "version", "commit", "load", "busy", "interrupted"];

#[test]
fn every_collective_prints_figures_with_exactly_the_keys() {
    let lines = [
        "bench barrier --budget 0 --json",
        "bench collective broadcast --bytes 8,8k --budget 0 --json --mode latency --rewrite --fresh 3",
        "bench collective reduce --bytes 64 --sync strict,loose,mine/all --budget 0 --json --arrival skewed",
    ];
    for line in lines {
        let objects = objects(line);
        for object in &objects {
            assert_eq!(keys(object), BTreeSet::from(FIGURE), "{line}");
        }
        let peers: Vec<&str> = objects.iter().filter_map(|one| one["peer"].as_str()).collect();
        assert!(peers.contains(&"std") && peers.contains(&"hurdles"), "{line}: {peers:?}");
        let absent = objects.iter().find(|object| object["peer"] == "mpirun").unwrap();
        assert!(absent["median_ns"].is_null(), "an MPI that is not there is listed");
        let mut ours = objects.iter().filter(|object| object["peer"].is_null());
        let is_whole = |one: &Value| one["algorithm"].is_string() && one["median_ns"].is_number();
        assert!(ours.any(is_whole), "{line}");
    }
}

/// The commit is that of the build, which may be any.
#[test]
fn objects_and_tables_name_machine_build_and_date() {
    for line in [
        "bench barrier --budget 0",
        "bench counting stencil --budget 0.3",
        "topo --budget 0",
        "topo --fabric processes --budget 0",
        "tune --collective barrier --pes 2 --budget 0.5",
    ] {
        let objects = objects(&format!("{line} --json"));
        let page = stdout(line);
        let first = page.lines().next().expect("a line");
        for object in objects {
            let context = &object["context"];
            assert_eq!(keys(context), BTreeSet::from(CONTEXT), "{line}");
            assert!(context["machine"].as_str().is_some_and(|machine| machine.contains("cpu")));
            assert!(context["date"].as_str().is_some_and(|date| date.ends_with('Z')), "{context}");
            assert_eq!(context["version"], env!("CARGO_PKG_VERSION"));
            assert_eq!(context["interrupted"], false);
            let commit = context["commit"].as_str().expect("a commit");
            let is_id = commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_id || commit == "unknown", "{commit}");
            let machine = context["machine"].as_str().expect("text");
            let build = format!("consort {} ({commit})", env!("CARGO_PKG_VERSION"));
            let head = page.lines().take(2).collect::<Vec<&str>>().join(" ");
            assert!(first.starts_with(machine.split(' ').next().unwrap()), "{line}: {page}");
            assert!(head.contains(machine) && head.contains(&build), "{line}: {page}");
        }
    }
}

#[test]
fn more_pes_than_cores_share_them() {
    let page = stdout(
        "bench collective reduce --pes 16 --bytes 8 --budget 0 --algorithm knomial(radix=4)",
    );
    assert!(page.contains("knomial(radix=4)"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    // On a machine with 16 cores or more, no core is shared.
    assert!(says(&page, "16 PEs share") || says(&page, "one a core"), "{page}");
}

#[test]
fn one_pe_is_a_team() {
    assert!(stdout("bench collective broadcast --pes 1 --bytes 8 --budget 0").contains("1 PE"));
}

#[test]
fn figures_go_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figures.json");
    let line = format!("bench barrier --budget 0 --json={}", path.display());
    assert_eq!(stdout(&line), "");
    assert!(std::fs::read_to_string(path).unwrap().lines().count() >= 4);
}

/// A single call of 128 MiB takes longer than the budget.
#[test]
fn exceeded_budget_is_explained() {
    let output = consort("bench collective broadcast --bytes 128M --budget 0 --peers std");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    assert!(complaint.contains("not 0.0 s: a launch of 2 kinds of work"), "{complaint}");
    let page = String::from_utf8_lossy(&output.stdout);
    assert!(says(&page, "limits for larger buffers are those for 64 MiB"), "{page}");
}

/// Runs a command; returns `None` if every block was disturbed.
fn undisturbed(line: &str) -> Option<String> {
    let output = consort(line);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || complaint.contains("idle"), "{line}: {complaint}");
    output.status.success().then(|| String::from_utf8(output.stdout).expect("text"))
}

/// The workloads check the data that they receive.
#[test]
fn workloads_are_timed_with_and_without_counting() {
    let ways = ["counted put", "put, fence, flag", "put, barrier"];
    for (name, options, pes, ways) in [
        ("counted-put", "--bytes 8,4k", 2, &ways[..2]),
        ("counted-all-to-all", "--bytes 8,4k,64k --pes 3", 3, &ways),
        ("stencil", "--bytes 8,4k --pes 3", 3, &ways[..2]),
    ] {
        let line = format!("bench counting {name} {options} --budget 0 --json");
        let Some(text) = undisturbed(&line) else { continue };
        for line in text.lines() {
            let object: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(keys(&object), BTreeSet::from(FIGURE));
            assert_eq!((&object["bench"], &object["pes"]), (&name.into(), &pes.into()));
            assert!(object["median_ns"].as_f64() > Some(1.0), "{line}");
        }
        for way in ways {
            assert!(text.contains(&format!("\"algorithm\":\"{way}\"")), "{text}");
        }
        if let Some(page) = undisturbed(&line.replace(" --json", "")) {
            // A header may be broken between words.
            let mut words = ways.iter().flat_map(|way| way.split(' '));
            assert!(words.all(|word| page.contains(word)), "{page}");
            assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
        }
    }
}

#[test]
fn bad_input_is_refused_with_advice() {
    let refused = [
        ("bench", "Usage: consort bench <COMMAND>"),
        ("bench shuffle", "`consort bench --help` lists them"),
        ("bench all_reduce", "use `consort bench collective all_reduce`"),
        ("bench put-rate --bytes 8", "use `consort bench point-to-point put-rate`"),
        ("bench stencil", "use `consort bench counting stencil`"),
        ("bench queue", "use `consort bench container queue`"),
        ("bench collective shuffle", "use barrier, broadcast"),
        ("bench collective barrier", "use `consort bench barrier`"),
        ("bench counting shuffle", "counted-put, counted-all-to-all, stencil"),
        ("bench counting counted-put --pes 3", "needs 2 PEs"),
        ("bench counting stencil --pes 1", "2 to 1024"),
        ("bench counting counted-put --sync loose", "unexpected argument '--sync'"),
        ("bench region --pes 0", "use 1 to 1024"),
        ("bench region --pes 2,100000", "use 1 to 1024"),
        ("bench region --pes two", "two"),
        ("bench barrier --pes 2,8", "use 1 to 1024"),
        ("bench collective reduce --fresh 0", "use a number from 1 to"),
        ("bench collective reduce --bytes 12", "multiple of 8"),
        ("bench collective reduce --bytes banana", "banana"),
        ("bench collective reduce --sync tight", "strict, loose, mine"),
        ("bench collective reduce --budget never", "use a number of seconds"),
        ("bench collective reduce --waiting hope", "spin-yield-park"),
        ("bench collective reduce --algorithm knomial(", "NAME(PARAMETER=NUMBER"),
        ("bench collective reduce --algorithm ring", "use direct, chain"),
        ("bench collective reduce --algorithm flat --all-algorithms", "cannot be used with"),
        ("bench barrier --bytes 8", "unexpected argument '--bytes'"),
        ("bench collective broadcast --rewrite", "--mode latency"),
        ("bench collective reduce --sync loose --buffers private", "--buffers symmetric"),
        ("bench barrier --pes 100000", "1 to 1024"),
        ("bench barrier --fabric mixed:0x2", "mixed:4x2 has 4 such processes"),
        ("bench barrier --fabric mixed:2 --pes 3", "a multiple of 2"),
        ("explain barrier --fabric mixed", "as in mixed:2x1"),
        ("wisdom path --fabric mixed:2", "`consort topo --fabric mixed:2` shows"),
        ("tune --fabric mixed", "give the number of PEs"),
    ];
    for (line, part) in refused {
        let output = consort(line);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {complaint}");
        assert!(complaint.contains(part), "{line}: {complaint}");
    }
}

#[test]
fn bench_accepts_the_name_from_explain() {
    for what in ["reduce --bytes 64 --pes 2", "all_reduce --bytes 8k --pes 2"] {
        let explained = stdout(&format!("explain {what}"));
        let (_, candidate) =
            explained.lines().next().and_then(|line| line.rsplit_once(": ")).unwrap();
        let line =
            format!("bench collective {what} --algorithm {candidate} --budget 0 --peers none");
        assert!(consort(&line).status.success(), "{line}");
    }
}
