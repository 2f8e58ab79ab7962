//! Collectives between processes.

use std::{collections::BTreeSet, fs, process::Command};

use serde_json::Value;

use super::{FIGURE, consort, keys, objects, stdout};
use consort_sandbox::commands::says;

#[test]
fn processes_are_measured_as_threads_are() {
    let lines = [
        "bench barrier --pes 3 --fabric processes --budget 0 --json",
        "bench collective all_gather --bytes 8 --sync strict --fabric processes --budget 0 --json",
        "bench collective reduce --bytes 64 --sync loose --mode latency --fabric processes --budget 0 --json",
    ];
    for line in lines {
        let objects = objects(line);
        for object in &objects {
            assert_eq!(keys(object), BTreeSet::from(FIGURE), "{line}");
        }
        let ours: Vec<_> = objects.iter().filter(|object| object["peer"].is_null()).collect();
        assert!(!ours.is_empty(), "{line}");
        let is_whole = |one: &&Value| {
            one["fabric"] == "processes" && one["algorithm"].is_string() && one["reps"] != 0
        };
        assert!(ours.iter().all(is_whole), "{line}: {ours:?}");
    }
    let page = stdout("bench collective scan --bytes 8 --fabric processes --budget 0");
    assert!(says(&page, "2 PEs that are processes"), "{page}");
}

/// All processes find the same in each launch. No warning if there are more processes than cores.
#[test]
fn warning_of_all_processes_is_shown_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("wisdom.processes.toml"), "nonsense").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    command.args(["bench", "barrier", "--fabric", "processes", "--pes", "3", "--budget", "0.2"]);
    command.env("CONSORT_WISDOM", folder.path().join("wisdom.toml")).env("PATH", "");
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("warning: wisdom is not used: ").count(), 1, "{said}");
    assert!(!said.contains("--bind"), "{said}");
}

#[test]
fn unsupported_process_options_are_refused() {
    for (line, why) in [
        ("bench counting stencil --fabric processes", "unexpected argument '--fabric'"),
        ("bench collective scan --fabric processes --peers std", "it works only between threads"),
    ] {
        let refused = consort(line);
        let error = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && error.contains(why), "{line}: {error}");
    }
}

#[test]
fn places_and_times_of_messages_are_shown() {
    let object = &objects("topo --fabric processes --pes 3 --budget 0.01 --json")[0];
    let places = object["places"].as_array().expect("places");
    let of_all = |key: &str| places.iter().map(|place| place[key].clone()).collect::<Vec<_>>();
    assert_eq!(of_all("pe"), [0, 1, 2]);
    assert_eq!(of_all("process"), [0, 1, 2]);
    assert_eq!(of_all("machine"), [0, 0, 0]);
    let distances = object["distances"].as_array().expect("distances");
    assert_eq!(distances.len(), 3, "{object}");
    for distance in distances {
        assert_eq!(distance["between"], "processes");
        assert!(distance["one_way_ns"].as_f64() > Some(1.0), "{distance}");
    }
    let page = stdout("topo --fabric processes --pes 2 --budget 0.01");
    assert!(says(&page, "2 PEs of 2 processes (processes) on 1 machine"), "{page}");
    assert!(says(&page, "processes of a machine"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    let unmeasured = stdout("topo --fabric processes --budget 0");
    assert!(!says(&unmeasured, "A message of 8 bytes"), "{unmeasured}");
    for (line, status, advice) in [
        ("topo --pes 2", 2, "--pes: only with --fabric"),
        ("topo --fabric mpi:2 --pes 3", 2, "it must be a multiple of 2"),
        ("topo --fabric mpi", 1, "no mpirun found"),
    ] {
        let output = consort(line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(status) && said.contains(advice), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{line}: {said}");
    }
}
