//! `consort model`, from the outside: tables that fit, and what `--json` holds.

use std::process::Command;

use serde_json::Value;

use crate::says;

fn stdout(line: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    let output = command.args(line.split_whitespace()).output().expect("the command starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {complaint}");
    String::from_utf8(output.stdout).expect("text")
}

/// The objects that a command prints, one a line.
fn objects(line: &str) -> Vec<Value> {
    stdout(line).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn tables_fit() {
    for line in ["", "--table 4.1", "--table 4.2", "--lines 4294967295 --k 1,2,3"] {
        let text = stdout(&format!("model scc {line}"));
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{line}: {text}");
    }
}

#[test]
fn table_4_1_has_the_parameters() {
    let values: Vec<f64> = objects("model scc --table 4.1 --json")
        .iter()
        .map(|object| object["value_ns"].as_f64().expect("a number"))
        .collect();
    assert_eq!(values, [5.0, 126.0, 461.0, 208.0, 69.0, 330.0, 190.0, 95.0]);
}

#[test]
fn table_4_2_has_paper_model_and_error() {
    let text = stdout("model scc --table 4.2");
    let row = |name: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.trim().starts_with(name)).expect(name);
        line.trim()[name.len()..].split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("OC-BCAST k=7"), ["34.30", "34.30", "+0.00", "%", "35.34", "34.30"]);
    assert_eq!(row("scatter-allgather")[..3], ["13.38", "13.18", "-1.50"]);

    let objects = objects("model scc --table 4.2 --json");
    let ks: Vec<Option<u64>> = objects.iter().map(|object| object["k"].as_u64()).collect();
    assert_eq!(ks, [Some(2), Some(7), Some(47), None]);
    let number = |key: &str| objects[2][key].as_f64().expect(key);
    let error_percent = (number("model_mbps") / 35.88 - 1.0) * 100.0;
    assert!((number("error_percent") - error_percent).abs() < 1e-9 && error_percent.abs() < 0.1);
    assert!(number("contended_mbps") < number("model_mbps"));
    assert!(number("as_printed_mbps") > number("model_mbps"));
}

/// Each size has the degrees that were asked for, the best one once, and the two-sided broadcasts.
#[test]
fn figures_by_size() {
    let objects = objects("model scc --lines 1,96 --k 47,7 --json");
    let of = |lines: u64| -> Vec<&Value> {
        objects.iter().filter(|object| object["lines"] == lines).collect()
    };
    assert_eq!([1, 96].map(|lines| of(lines).len()), [2 + 1 + 2, 2 + 2]);
    for lines in [1, 96] {
        let trees = of(lines).into_iter().filter(|object| !object["k"].is_null());
        let latency_ns = |object: &Value| object["contended_latency_ns"].as_f64().expect("a time");
        let least = trees.clone().min_by(|a, b| latency_ns(a).total_cmp(&latency_ns(b)));
        let best: Vec<&Value> = trees.filter(|object| object["best"] == true).collect();
        assert_eq!(best, [least.expect("a tree")], "{lines}");
    }
    let k47 = of(96).into_iter().find(|object| object["k"] == 47).expect("as asked for");
    assert_eq!(k47["latency_ns"], 126_182.0);
    assert_eq!(k47["throughput_mbps"], 96.0 * 32.0 / 126_182.0 * 1e3);
}

#[test]
fn json_goes_to_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.json");
    let said = stdout(&format!("model scc --table 4.1 --json={}", path.display()));
    assert_eq!(said, "");
    let text = std::fs::read_to_string(path).expect("the file");
    assert_eq!(text.lines().count(), 8);
}

/// By formula, so that a million PEs take no longer than two; few bytes go down trees, and on the
/// network's own terms the best radix is neither the least nor the largest.
#[test]
fn a_million_pes_of_a_cluster() {
    let objects = objects("model cluster --pes 1000000 --bytes 8,1M --json");
    let best = |collective: &str, bytes: u64| -> &str {
        let of = |one: &&Value| one["collective"] == collective && one["bytes"] == bytes;
        let mut best = objects.iter().filter(of).filter(|one| one["best"] == true);
        let algorithm = best.next().expect("a best")["algorithm"].as_str().expect("a name");
        assert!(best.next().is_none(), "one best of {collective}");
        algorithm
    };
    assert_eq!(best("barrier", 0), "dissemination(radix=4)");
    assert_eq!(best("broadcast", 8), "knomial(radix=4)");
    assert_eq!(best("broadcast", 1 << 20), "knomial(radix=2)");
    let text = stdout("model cluster --pes 4 --bytes 1M");
    assert!(says(&text, "chain in 64 chunks") && says(&text, "o = 1.50 us"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn what_is_no_cluster_is_refused() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    let output = command.args(["model", "cluster", "--machine", "scc"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("scc is no cluster"), "{said}");
}

/// What `estimate` chooses on a machine that is not here.
#[test]
fn a_machine_is_explained_by_its_model() {
    let objects = objects("explain broadcast --machine scc --bytes 6k --all --json");
    let [one] = &objects[..] else { panic!("{objects:?}") };
    assert_eq!((&one["machine"], &one["origin"]), (&"scc".into(), &"model".into()));
    assert_eq!(one["asked_pes"], 48);
    let candidates = one["candidates"].as_array().expect("all candidates");
    assert!(
        candidates.iter().all(|one| one["candidate"] != "direct"),
        "nothing can be exposed there"
    );
    assert_eq!(candidates[0]["candidate"], "oc_bcast(chunk_bytes=3072,k=7)");
    let text = stdout("explain reduce --machine barcelona-x8 --pes 8");
    assert!(says(&text, "machine: barcelona-x8"), "{text}");
}
