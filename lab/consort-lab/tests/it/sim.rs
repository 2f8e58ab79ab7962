//! Tests `consort-lab sim` from the outside: figures, tables, files, and errors for bad input.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use consort_sandbox::commands::says;

/// Runs `consort-lab sim` in a folder, with its wisdom, and therefore its configuration, there too.
fn sim_in(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort-lab"));
    command.arg("sim").args(line.split_whitespace()).current_dir(folder);
    command.env("CONSORT_WISDOM", folder.join("wisdom.toml"));
    command.output().expect("the command starts")
}

fn shown_in(folder: &Path, line: &str) -> String {
    let output = sim_in(folder, line);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {complaint}");
    String::from_utf8(output.stdout).expect("text")
}

fn shown(line: &str) -> String {
    shown_in(tempfile::tempdir().expect("a folder").path(), line)
}

/// Returns the objects that a command prints, one per line.
fn objects(line: &str) -> Vec<Value> {
    let text = shown(&format!("{line} --json"));
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Returns the only object.
fn object(line: &str) -> Value {
    let mut objects = objects(line);
    assert_eq!(objects.len(), 1, "{line}");
    objects.remove(0)
}

fn median_ns(object: &Value) -> f64 {
    object["median_ns"].as_f64().expect("a time")
}

#[test]
fn object_has_benchmark_keys_and_sim() {
    let sim = object("broadcast --algorithm oc-bcast --lines 1");
    let mut keys: Vec<&str> = sim.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys.pop_if(|key| *key == "waiting"), Some("waiting"));
    let expected = [
        "algorithm",
        "arrival",
        "bench",
        "busy_cores",
        "bytes",
        "c2c_class",
        "c2c_ns",
        "chosen",
        "ci95_ns",
        "fabric",
        "launches",
        "mean_ns",
        "median_ns",
        "memcpy_gbps",
        "mode",
        "p99_ns",
        "params",
        "peer",
        "pes",
        "placement",
        "pull_gbps",
        "ratio_to_limit",
        "reps",
        "sim",
        "sync",
        "team",
    ];
    assert_eq!(keys, expected);
    assert_eq!((&sim["fabric"], &sim["bench"]), (&"sim:scc".into(), &"broadcast".into()));
    assert_eq!(sim["params"], serde_json::json!({"chunk_bytes": 3072, "k": 7}));
    assert_eq!((&sim["bytes"], &sim["pes"], &sim["reps"]), (&32.into(), &48.into(), &3.into()));
    assert_eq!((&sim["mode"], &sim["sync"]), (&"latency".into(), &"mine".into()));
    for key in ["peer", "waiting", "c2c_ns", "c2c_class", "memcpy_gbps", "ratio_to_limit"] {
        assert!(sim[key].is_null(), "{key}");
    }
    let barrier = object("barrier --pes 4 --algorithm flat");
    assert!(barrier["bytes"].is_null() && barrier["sync"] == "strict");
}

#[test]
fn seed_determines_all_results() {
    let line = "broadcast --algorithm oc-bcast --lines 3 --mode throughput --json --seed";
    let [one, same, other] = [7, 7, 8].map(|seed| shown(&format!("{line} {seed}")));
    assert_eq!(one, same);
    assert_ne!(one.replace("\"seed\":7", "\"seed\":8"), other);
}

#[test]
fn messages_and_bytes_are_counted() {
    let broadcast = &object("broadcast --algorithm knomial --lines 2 --pes 9")["sim"];
    assert_eq!((&broadcast["messages"], &broadcast["message_bytes"]), (&8.0.into(), &512.0.into()));
    let barrier = &object("barrier --algorithm dissemination --pes 8")["sim"];
    assert_eq!((&barrier["messages"], &barrier["message_bytes"]), (&24.0.into(), &0.0.into()));
}

/// All PEs enter a single call together, so the call takes as long as the PE that leaves last.
#[test]
fn call_time_is_that_of_the_last_pe() {
    for line in ["broadcast --algorithm oc-bcast --lines 97", "reduce --bytes 8k --algorithm chain"]
    {
        let sim = object(&format!("{line} --calls 1"));
        let spent = sim["sim"]["last"].as_object().expect("causes");
        let sum: f64 = spent.values().map(|ns| ns.as_f64().expect("a time")).sum();
        assert_eq!(spent.len(), 6);
        assert!((sum - median_ns(&sim)).abs() < 0.002 * sum, "{line}: {sum} of {sim}");
    }
}

#[test]
fn disabled_effects_take_no_time() {
    let line = "broadcast --algorithm oc-bcast --param k=47 --lines 96";
    let whole = object(line);
    let near = object(&format!("{line} --near"));
    let alone = object(&format!("{line} --uncontended"));
    let fitted = object(&format!("{line} --fitted"));
    assert!(median_ns(&near) < median_ns(&whole));
    assert!(median_ns(&alone) < median_ns(&whole));
    assert!(median_ns(&fitted) > median_ns(&whole) + 4000.0);
    let queueing = |sim: &Value| sim["sim"]["mean"]["contention_ns"].as_f64().expect("a time");
    assert!(queueing(&whole) > 1000.0 && queueing(&alone) == 0.0);
    assert_eq!((&near["sim"]["near"], &alone["sim"]["contention"]), (&true.into(), &false.into()));
}

#[test]
fn calls_in_a_row_overlap() {
    let line = "broadcast --algorithm oc-bcast --lines 96 --mode";
    let [alone, in_a_row] = ["latency", "throughput"].map(|mode| object(&format!("{line} {mode}")));
    assert!(median_ns(&in_a_row) < 0.8 * median_ns(&alone), "{in_a_row} {alone}");
    assert!(in_a_row["ci95_ns"].is_null() && alone["ci95_ns"].is_array());
}

#[test]
fn sizes_algorithms_and_values_are_crossed() {
    let line = "broadcast --algorithm oc-bcast --algorithm flat --param k=2,3 --lines 1,2 --pes 8";
    let all = objects(line);
    let algorithm = |object: &Value| (object["bytes"].as_u64(), object["params"]["k"].as_u64());
    let k = [Some(2), Some(3), None];
    let expected: Vec<_> = [32, 64].iter().flat_map(|&b| k.map(|k| (Some(b), k))).collect();
    assert_eq!(all.iter().map(algorithm).collect::<Vec<_>>(), expected);
    assert!(objects("barrier --pes 8 --all-algorithms").len() > objects("barrier --pes 8").len());
}

#[test]
fn tables_fit_and_name_their_settings() {
    for line in [
        "broadcast --all-algorithms --pes 8 --lines 1",
        "reduce --pes 8 --mode throughput --sync loose --root 3 --fitted",
        "barrier --pes 3 --near --uncontended --seed 5",
        "broadcast --sweep --pes 2 --calls 1",
        "broadcast --bytes 33 --sync strict --algorithm knomial(radix=4) --pes 1",
    ] {
        let text = shown(line);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{line}: {text}");
        assert!(says(&text, "Intel SCC, 6 x 4 tiles") && text.contains(" events took "), "{text}");
    }
    let text = shown("broadcast --lines 1 --pes 8");
    assert!(text.contains("1 line, 32 B\n"), "{text}");
    assert!(text.contains("not simulated: direct cannot serve this call: "), "{text}");
    for column in
        ["off-chip", "on-chip", "flags", "contention", "compute", "waiting", "the last, PE "]
    {
        assert!(text.contains(column), "{column}: {text}");
    }
}

#[test]
fn sweep_goes_up_to_a_megabyte() {
    let folder = tempfile::tempdir().unwrap();
    let line = "broadcast --algorithm oc-bcast --param k=1,2 --sweep --pes 3 --calls 1";
    let text = shown_in(folder.path(), line);
    let rows: Vec<&str> = text.lines().filter(|line| line.ends_with("ms")).collect();
    assert!(rows.last().is_some_and(|row| row.trim().starts_with("32768  1048576")), "{text}");
    assert!(text.contains("(1) oc_bcast(chunk=3K,k=1)\n(2) oc_bcast(chunk=3K,k=2)\n"), "{text}");
}

#[test]
fn picture_has_every_pe_twice_and_trace_has_every_step() {
    let folder = tempfile::tempdir().unwrap();
    let line = "broadcast --algorithm oc-bcast --lines 1 --picture call.svg --trace call.json";
    let text = shown_in(folder.path(), line);
    assert!(says(&text, "1 call alone"), "{text}");
    let svg = fs::read_to_string(folder.path().join("call.svg")).unwrap();
    assert!(svg.starts_with("<svg xmlns") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<circle").count(), 48);
    assert!((0..48).all(|pe| svg.contains(&format!(">PE {pe}</text>"))));
    for part in ["waits", "sets a flag", "1 us", "oc_bcast(chunk_bytes=3072,k=7) on scc, 48 PEs"] {
        assert!(svg.contains(part), "{part}");
    }
    let trace = fs::read_to_string(folder.path().join("call.json")).unwrap();
    let trace: Value = serde_json::from_str(&trace).expect("JSON");
    let steps = trace["traceEvents"].as_array().expect("steps");
    let blocks = svg.matches("<rect").count();
    assert!(blocks > 200 && blocks < steps.len() + 10, "{blocks} of {}", steps.len());
    assert!((0..48).all(|pe| steps.iter().any(|step| step["tid"] == pe)));
}

#[test]
fn user_machine_is_simulated_under_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let source = Command::new(env!("CARGO_BIN_EXE_consort-lab"))
        .args(["machines", "scc", "--source"])
        .output()
        .expect("the command starts");
    let text = String::from_utf8(source.stdout).unwrap();
    let slower = text.replace("hop_ns = 5", "hop_ns = 500");
    fs::write(folder.path().join("mine.toml"), slower).unwrap();
    let line = "barrier --algorithm flat --pes 6 --json --machine";
    let of = |machine: &str| -> Value {
        serde_json::from_str(&shown_in(folder.path(), &format!("{line} {machine}"))).unwrap()
    };
    let (scc, mine) = (of("scc"), of("mine.toml"));
    assert_eq!(mine["fabric"], "sim:mine");
    assert!(median_ns(&mine) > 2.0 * median_ns(&scc));
}

/// Tests the part of a call's cost that differs least between machines: the lines that move between
/// caches. A message of one line takes two, a store and a load. In addition, every fourth call
/// gives credits.
#[test]
fn small_calls_transfer_the_fewest_lines() {
    let folder = tempfile::tempdir().unwrap();
    let transfers = |line: &str| {
        let line =
            format!("{line} --machine barcelona-x8 --pes 2 --mode throughput --calls 65 --json");
        let one: Value = serde_json::from_str(&shown_in(folder.path(), &line)).unwrap();
        one["sim"]["line_transfers"].as_f64().unwrap()
    };
    for (line, least, most) in [
        ("barrier --algorithm dissemination", 4.0, 4.0),
        ("barrier --algorithm central", 2.5, 3.0),
        ("broadcast --bytes 8 --algorithm flat", 2.0, 3.0),
        ("reduce --bytes 8 --algorithm flat", 2.0, 3.0),
        ("reduce --bytes 8 --algorithm direct", 4.0, 5.0),
        ("broadcast --bytes 8 --sync strict --algorithm flat", 4.0, 4.0),
        ("reduce --bytes 8 --sync strict --algorithm flat", 4.0, 4.0),
    ] {
        let found = transfers(line);
        assert!((least..=most).contains(&found), "{line}: {found} transfers");
    }
    let line = "broadcast --algorithm flat --lines 1 --json";
    let scc: Value = serde_json::from_str(&shown_in(folder.path(), line)).unwrap();
    assert!(scc["sim"]["line_transfers"].is_null(), "no cache is coherent there");
}

#[track_caller]
fn refused(line: &str, says: &str) {
    fails(line, 2, says);
}

#[track_caller]
fn fails(line: &str, status: i32, says: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = sim_in(folder.path(), line);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{line}: {said}");
    assert!(said.contains(says), "{line}: `{says}` in {said}");
    assert!(output.stdout.is_empty(), "{line}");
    assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 0, "{line} leaves a file");
}

#[test]
fn refused_simulation_lists_valid_choices() {
    refused("broadcast --machine ssc", "unknown machine `ssc`: expected barcelona-x8, bluegene-p");
    fails(
        "broadcast --machine host",
        1,
        "host.toml does not exist: `consort-lab calibrate` writes it",
    );
    refused("broadcast --algorithm ring", "no algorithm `ring`: use direct, flat, knomial");
    refused("broadcast --algorithm direct", "direct cannot serve this call");
    refused("broadcast --algorithm oc-bcast --param q=3", "`q`: expected one of chunk_bytes, k");
    refused("broadcast --algorithm oc-bcast(q=3)", "no parameter `q`: it has chunk_bytes, k");
    refused("broadcast --param k=0", "oc_bcast needs k from 1 to");
    refused("broadcast --param k=48", "k is 48, but 48 PEs allow at most 47");
    refused("broadcast --algorithm oc-bcast(k=4) --pes 4", "k is 4, but 4 PEs allow at most 3");
    refused(
        "broadcast --algorithm oc-bcast --param chunk_bytes=4000",
        "two chunks of 4000 B do not fit the message buffer, 6656 B",
    );
    refused("broadcast --pes 49", "--pes 49: scc has 48 PEs");
    refused("broadcast --root 48", "the ranks of 48 PEs are 0 to 47");
    refused("broadcast --bytes 1G", "their buffers may take 4 GiB in total");
    refused("reduce --bytes 12", "not multiples of 8 B");
    refused("barrier --bytes 8", "a barrier moves no data");
    refused("barrier --sweep", "a barrier moves no data");
    refused("barrier --sync loose", "a barrier is always strict");
    refused("barrier --root 1", "a barrier has no root");
}

#[test]
fn trace_or_picture_shows_one_simulation() {
    refused("broadcast --lines 1 --trace x", "a trace or picture shows one simulation");
    refused("broadcast --picture x --algorithm flat", "these are 2: name one");
    refused("broadcast --picture x.png --lines 1", "x.png is not an SVG file");
}

#[test]
fn far_slower_candidate_is_simulated_only_on_request() {
    let line = "all_reduce --machine cluster --pes 128 --bytes 8 --calls 1";
    let why = "not simulated: flat of 8 B: the model estimates more than 10x the best";
    let all = shown(line);
    assert!(all.contains(why), "{all}");
    let flat = shown(&format!("{line} --algorithm flat"));
    assert!(flat.contains("flat") && !says(&flat, "not simulated"), "{flat}");
}

#[test]
fn simulation_over_budget_is_stopped_and_listed() {
    // 4 MiB in chunks are 100 million sends. No machine simulates them in two seconds, but all
    // simulate those of 8 bytes.
    let algorithm = "pipelined(chunk_bytes=256,radix=1)";
    let line = "broadcast --machine cluster --pes 64 --calls 100 --budget 2";
    let line = format!("{line} --algorithm {algorithm}");
    let why = format!("{algorithm}, 4 MiB: not simulated within 2.0 s; raise --budget");
    fails(&format!("{line} --bytes 4M"), 1, &why);
    let some = shown(&format!("{line} --bytes 8,4M"));
    let some = some.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(some.contains(&format!("not simulated: {why}")), "{some}");
}

/// Returns the time of the fastest of some algorithms.
fn fastest_ns(what: &str, algorithms: &[&str]) -> f64 {
    let time = |algorithm: &&str| median_ns(&object(&format!("{what} --algorithm {algorithm}")));
    algorithms.iter().map(time).fold(f64::INFINITY, f64::min)
}

/// A tree of two levels stays within the caches of a die for any root, and has a radix for each
/// level.
#[test]
fn two_level_trees_win_where_distances_differ() {
    for (machine, most) in [("opteron-6176-x4", 0.9), ("xeon-e7-8867l-x8", 0.85)] {
        let what = format!("broadcast --machine {machine} --bytes 2k --root 5 --sync strict");
        let two = [
            "two_level(knomial(radix=2),knomial(radix=2))",
            "two_level(knomial(radix=2),knomial(radix=4))",
        ];
        let one = ["knomial(radix=2)", "knomial(radix=4)", "knomial(radix=8)"];
        let (two, one) = (fastest_ns(&what, &two), fastest_ns(&what, &one));
        assert!(two < most * one, "{machine}: {two} ns in two levels, {one} ns in one");
    }
}

/// A chunk moves down while later ones move up.
#[test]
fn phases_of_a_pipelined_all_reduce_overlap() {
    let what = "all_reduce --machine cray-xt4 --pes 32 --bytes 1M";
    let overlap = fastest_ns(what, &["pipelined(chunk_bytes=4096,radix=1)"]);
    let in_turn = fastest_ns(what, &["chain(chunk_bytes=4096)"]);
    assert!(overlap < 0.7 * in_turn, "{overlap} ns, and {in_turn} ns one after the other");
}
