//! `consort bench lock`, `delegate`, `counter` and `container`.

use std::collections::BTreeSet;

use consort_bench::workloads::critical_sections::situations::Situation;
use serde_json::Value;

use super::{consort, keys, objects, stdout};
use consort_sandbox::commands::says;

const ENTRY: [&str; 28] = [
    "bench",
    "situation",
    "busy_processes",
    "algorithm",
    "is_peer",
    "load",
    "threads",
    "placement",
    "increments",
    "between",
    "launches",
    "mops",
    "ci95_mops",
    "ratio",
    "ci95_ratio",
    "fairness",
    "fairness_p90",
    "windows",
    "busier_half",
    "processor_ns",
    "block_ms",
    "median_ns",
    "ci95_ns",
    "p99_ns",
    "p999_ns",
    "longest_ns",
    "absent",
    "context",
];

const LOCKS: [&str; 8] =
    ["Handoff, default", "TestAndSet", "Ticket", "Mcs", "Clh", "Cna", "Hapax", "HybLock"];
const SCHEMES: [&str; 15] = [
    "Locked, default",
    "CcSynch",
    "HSynch",
    "HybComb",
    "FallbackServer",
    "MpServer",
    "ShmServer",
    "ShmServer, backoff",
    "Locked, detached",
    "Locked, batch",
    "CcSynch, batch",
    "FallbackServer, detached",
    "FallbackServer, batch",
    "MpServer, detached",
    "MpServer, batch",
];
const PEERS: [&str; 5] =
    ["parking_lot Mutex", "parking_lot Fair", "std Mutex", "mcslock", "fetch_add"];

/// Returns whether an object has the figures of its load, and no other.
fn has_its_figures(entry: &Value) -> bool {
    let is = |key: &str| entry[key].as_f64() > Some(0.0);
    // The steps of some clocks are longer than an operation.
    let is_timed = |key: &str| entry[key].as_f64() >= Some(0.0);
    match entry["load"].as_str().expect("a load") {
        "uncontended" => is("median_ns") && is("ratio") && entry["mops"].is_null(),
        // A scheme whose server shares a core may be so slow that its rate is nearly 0.
        "full" => is_timed("median_ns") && entry["mops"].is_number() && entry["between"] == 50,
        "low" => is_timed("median_ns") && is_timed("p99_ns") && entry["ratio"].is_null(),
        _ => false,
    }
}

#[test]
fn critical_sections_are_timed_with_peers() {
    for (name, ours, peers, loads) in
        [("lock", &LOCKS[..], &PEERS[..], 1 + 2), ("delegate", &SCHEMES, &PEERS[..1], 1 + 2 * 2)]
    {
        // With more than one increment, and so without `fetch_add`.
        let line = format!("bench {name} --threads 1,3 --section 2 --budget 0");
        let figures = objects(&format!("{line} --json"));
        for entry in &figures {
            assert_eq!(keys(entry), BTreeSet::from(ENTRY));
            assert_eq!((&entry["bench"], &entry["increments"]), (&name.into(), &2.into()));
            assert!(has_its_figures(entry), "{entry}");
        }
        let peers = peers.iter().filter(|peer| **peer != "fetch_add");
        for row in ours.iter().chain(peers) {
            let of_row = figures.iter().filter(|entry| entry["algorithm"] == *row);
            assert_eq!(of_row.clone().count(), loads, "{row}");
            assert!(of_row.clone().all(|entry| entry["is_peer"] != ours.contains(row)), "{row}");
        }
        let page = stdout(&line);
        assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
        let rows = page.lines().filter(|line| line.starts_with(' '));
        assert!(rows.clone().count() > 3 * ours.len(), "{page}");
        assert!(rows.clone().all(|line| line.chars().count() <= 80), "{page}");
        assert!(says(&page, "3 threads, up to 50 iterations"), "{page}");
        assert!(says(&page, "2 increments"), "{page}");
    }
}

#[test]
fn help_lists_the_situations_and_what_they_are() {
    let help = stdout("bench lock --help");
    let (_, values) = help.split_once("Possible values:").expect("the situations");
    for situation in Situation::EVERY.map(Situation::name).iter().chain(&["all"]) {
        assert!(values.contains(&format!("- {situation}:")), "{situation}: {help}");
    }
}

/// Returns whether an object has the figures of a situation, or the reason why it has none.
fn is_of_a_situation(entry: &Value) -> bool {
    let is_time = |key: &str| entry[key].as_f64() >= Some(1.0);
    let times = ["median_ns", "p99_ns", "p999_ns", "longest_ns"];
    let half = entry["busier_half"].as_f64().unwrap_or_default();
    match entry["absent"].as_str() {
        Some(why) => !why.is_empty() && entry["mops"].is_null() && entry["is_peer"] == true,
        None => {
            times.into_iter().all(is_time)
                && entry["mops"].as_f64() > Some(0.0)
                && entry["ratio"].is_number()
                && (0.49..=1.0).contains(&half)
        }
    }
}

#[test]
fn locks_are_timed_in_every_situation() {
    let all = "bench lock all --threads 3 --budget 0";
    let entries = objects(&format!("{all} --json"));
    for entry in &entries {
        assert_eq!(keys(entry), BTreeSet::from(ENTRY));
        assert!(is_of_a_situation(entry), "{entry}");
        assert!(entry["threads"] == 3 && entry["busy_processes"] == 0, "{entry}");
    }
    for (situation, peers) in Situation::EVERY
        .map(Situation::name)
        .into_iter()
        .zip([&[9; 7][..], &[7; 3], &[6; 3]].concat())
    {
        let of = entries.iter().filter(|entry| entry["situation"] == situation);
        let names: Vec<&str> = of.clone().filter_map(|entry| entry["algorithm"].as_str()).collect();
        for peer in ["parking_lot", "std", "usync", "pthread", "nsync", "absl::Mutex"] {
            assert!(names.contains(&peer), "{situation}: {names:?}");
        }
        assert_eq!(of.filter(|entry| entry["is_peer"] == true).count(), peers, "{situation}");
    }
}

#[test]
fn several_situations_have_a_line_each_and_one_has_all_locks() {
    let several = stdout("bench lock long ping-pong --threads 2,3 --budget 0");
    let line = |page: &str, word: &str| page.lines().filter(|it| it.contains(word)).count();
    assert_eq!((line(&several, "long  "), line(&several, "ping-pong  ")), (2, 2), "{several}");
    assert!(says(&several, "Default: the rate of consort_sync's default lock"), "{several}");
    assert!(!several.contains("p99.9"), "{several}");
    let one = stdout("bench lock read-90 --threads 3 --busy 1 --budget 0");
    assert!(says(&one, "read-90, 3 threads, next to a busy process: 90 reads to 10 writes"));
    for column in ["ops/s", "half", "CPU/op", "p50", "p99", "p99.9", "longest", "RwLock", "std"] {
        assert!(one.contains(column), "{column}: {one}");
    }
    let verbose = stdout("bench lock queue wake-up --verbose --threads 2 --budget 0");
    assert!(verbose.contains("p99.9") && says(&verbose, "Default: the rate"), "{verbose}");
    for page in [several, one, verbose] {
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    }
}

#[test]
fn a_library_that_is_not_installed_is_skipped_with_its_reason() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_consort"));
    command.args("bench lock wake-up --threads 2 --budget 0".split(' ')).env("PATH", "");
    let output = command.output().expect("it starts");
    let page = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{page}");
    let why = "not measured: nsync: no gcc in PATH: on Debian, install gcc and libnsync-dev";
    assert!(says(&page, why) && says(&page, "not measured: absl::Mutex: no g++"), "{page}");
}

#[test]
fn counter_runs_under_all_locks_and_schemes() {
    let figures = objects("bench counter --threads 2 --between 0 --budget 0 --json");
    let full = figures.iter().filter(|entry| entry["load"] == "full");
    let names: Vec<&str> = full.map(|entry| entry["algorithm"].as_str().expect("a name")).collect();
    assert_eq!(names, [&LOCKS[..], &SCHEMES, &PEERS].concat());
    assert!(figures.iter().all(|entry| entry["between"].is_null() || entry["between"] == 0));
}

#[test]
fn stacks_and_queues_are_timed_with_peers() {
    let schemes = [&["Handoff"], &LOCKS[1..], &SCHEMES[1..7]].concat();
    for (name, others) in [
        ("stack", &["Stack, default", "Treiber", "parking_lot Mutex", "std Mutex"][..]),
        (
            "queue",
            &[
                "Handoff, 2 locks",
                "Mcs, 2 locks",
                "CcSynch, 2 combiners",
                "Queue, default",
                "Lcrq",
                "parking_lot Mutex",
                "std Mutex",
                "SegQueue",
                "ArrayQueue",
            ],
        ),
    ] {
        let line = format!("bench container {name} --threads 2 --budget 0");
        let figures = objects(&format!("{line} --json"));
        let full = figures.iter().filter(|entry| entry["load"] == "full");
        let names: Vec<&str> =
            full.map(|entry| entry["algorithm"].as_str().expect("a name")).collect();
        assert_eq!(names, [&schemes[..], others].concat());
        for entry in &figures {
            assert_eq!(keys(entry), BTreeSet::from(ENTRY));
            assert!(entry["bench"] == name && entry["increments"].is_null(), "{entry}");
            assert!(has_its_figures(entry), "{entry}");
        }
        let page = stdout(&line);
        assert!(page.contains(&format!("{name}: an operation puts a value and takes one")));
        assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    }
}

#[test]
fn bad_options_of_critical_sections_are_refused_with_advice() {
    for (line, part) in [
        ("bench lock --threads 0", "from 1 to 1024"),
        ("bench lock --threads 2,1025", "from 1 to 1024"),
        ("bench lock --threads two", "from 1 to 1024"),
        ("bench counter --section 0", "from 1 to 1000000"),
        ("bench delegate --between some", "some"),
        ("bench lock --pes 2", "unexpected argument '--pes'"),
        ("bench container heap", "[possible values: stack, queue]"),
        ("bench lock --between -1", "-1 is not in"),
        ("bench lock --budget -1", "use a number of seconds"),
        ("bench container stack --section 2", "unexpected argument '--section'"),
        ("bench lock tall", "[possible values: ramp, short, two-lines, long, burst,"),
        ("bench lock short --threads 0", "from 1 to 1024"),
        ("bench lock short --busy 0", "from 1 to 1024"),
        ("bench lock short --between 0", "cannot be used with '--between <N>'"),
        ("bench lock --section 2 hog", "'--section <N>' cannot be used with"),
        ("bench lock --busy 1", "<SITUATION>..."),
        ("bench hog", "use `consort bench lock hog`"),
    ] {
        let output = consort(line);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {complaint}");
        assert!(complaint.contains(part), "{line}: {complaint}");
    }
}

#[test]
fn bench_succeeds_with_closed_stderr() {
    use std::process::{Command, Stdio};
    // It warns that it took longer than this budget.
    let line = "bench lock --threads 1 --section 2 --budget 0 --json";
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    command.args(line.split_whitespace()).env("CONSORT_WISDOM", "/nowhere/wisdom.toml");
    let status = command.stdout(Stdio::null()).stderr(writer).status().expect("it starts");
    assert!(status.success(), "{status}");
}

#[test]
fn advice_names_a_type_and_why() {
    let page = stdout("sync advise --section 100 --threads 3 --budget 0");
    // A round says nothing about the next one.
    assert!(
        says(&page, "Undecided: nothing is surely") || says(&page, "Use Mutex<T>, the default")
    );
    assert!(!page.contains("batch") && !page.contains("MpServer"), "neither a result nor a core");
    assert!(page.contains("FallbackServer"), "it uses a lock where it has no core: {page}");
    let alone = stdout("sync advise --section 100 --threads 1 --budget 0");
    assert!(!says(&alone, "Left out"), "nobody is behind: {alone}");
    assert!(page.contains("default") && says(&page, "another library"), "{page}");
    let rows = page.lines().filter(|line| line.starts_with(' '));
    assert!(rows.clone().count() > LOCKS.len() + 4, "{page}");
    assert!(rows.clone().all(|line| line.chars().count() <= 80), "{page}");
    assert!(says(&stdout("sync advise --budget 0"), "million sections a second with"));
    for (line, part) in [
        ("sync advise --section 0 --threads 2", "from 1 to 1000000"),
        ("sync advise --section 10 --threads 0", "from 1 to 1024"),
    ] {
        let output = consort(line);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {complaint}");
        assert!(complaint.contains(part), "{line}: {complaint}");
    }
}
