//! Tests the output of `consort-lab machines`, and its errors.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Output},
};

/// Runs `consort-lab machines` with its wisdom, and therefore its configuration, in a folder.
fn machines(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_consort-lab"))
        .arg("machines")
        .args(words)
        .current_dir(folder)
        .env("CONSORT_WISDOM", folder.join("wisdom.toml"))
        .output()
        .expect("the command starts")
}

fn shown(folder: &Path, words: &[&str]) -> String {
    let output = machines(folder, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[track_caller]
fn refused(folder: &Path, words: &[&str], says: &str) {
    fails(folder, words, 1, says);
}

#[track_caller]
fn fails(folder: &Path, words: &[&str], status: i32, says: &str) {
    let output = machines(folder, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
    assert!(said.contains(says), "{words:?}: `{says}` in {said}");
    assert!(output.stdout.is_empty(), "{words:?}");
}

/// Returns the names in the first column of the list.
fn names(folder: &Path) -> Vec<String> {
    let summaries = shown(folder, &["--json"]);
    let name = |line: &str| {
        let summary: serde_json::Value =
            serde_json::from_str(line).expect("an object on each line");
        summary["name"].as_str().expect("a name").to_owned()
    };
    summaries.lines().map(name).collect()
}

/// `cluster` copies 5 GB/s in a node, and its network takes 6 ns per byte.
#[test]
fn byte_time_within_a_node_is_in_nanoseconds() {
    let folder = tempfile::tempdir().unwrap();
    let page = shown(folder.path(), &["cluster"]);
    let row = page.lines().find_map(|line| line.trim_start().strip_prefix("gap per byte"));
    let times: Vec<&str> = row.expect("a row").split_whitespace().collect();
    let [inside, "ns", between, "ns"] = times[..] else { panic!("{times:?}") };
    assert_eq!([inside, between].map(str::parse::<f64>), [Ok(0.2), Ok(6.0)]);
}

#[test]
fn machines_are_listed_and_shown_in_full() {
    let folder = tempfile::tempdir().unwrap();
    let list = shown(folder.path(), &[]);
    let names = names(folder.path());
    assert!(names.len() >= 8, "{names:?}");
    for name in &names {
        let begins = |line: &str| line.trim_start().starts_with(&format!("{name} "));
        assert!(list.lines().any(begins), "{name} in {list}");
        let page = shown(folder.path(), &[name]);
        assert!(page.starts_with(&format!("{name}: ")), "{page}");
        assert!(page.contains("PEs") && page.contains(" ns"), "{page}");
        let json: serde_json::Value =
            serde_json::from_str(&shown(folder.path(), &[name, "--json"])).expect("one object");
        assert_eq!(json["name"].as_str(), Some(name.as_str()));
        assert!(json["pes"].as_u64() > Some(1));
        for text in [&list, &page] {
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        }
    }
}

#[test]
fn costs_are_in_nanoseconds_and_fitted_ones_marked() {
    let folder = tempfile::tempdir().unwrap();
    let words = |name| -> Vec<String> {
        let page = shown(folder.path(), &[name]);
        page.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let xeon = words("xeon-e7-8867l-x8");
    assert!(xeon.contains(&"operation line is core die 1 hop 2 hops".to_owned()), "{xeon:?}");
    assert!(xeon.contains(&"load modified 2.35 ns 51.2 ns 136 ns 188 ns".to_owned()), "{xeon:?}");
    let scc = words("scc");
    assert!(scc.contains(&"overhead of a call 4.00 us".to_owned()), "{scc:?}");
    assert!(
        scc.join(" ").contains("assumed and 5 fitted: flag_read_ns to T2, T4 and T5, "),
        "{scc:?}"
    );
    let row = "move a line from or to a message buffer 136 ns 216 ns";
    assert!(scc.contains(&row.to_owned()), "{scc:?}");
}

#[test]
fn description_can_be_copied_changed_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let text = shown(folder.path(), &["scc", "--source"]);
    fs::write(folder.path().join("mine.toml"), text.replace("rows = 4", "rows = 3")).unwrap();
    assert!(shown(folder.path(), &["mine.toml"]).contains("6 x 3 tiles"));
    let broken = text.replace("hop_ns = 5", "hop_ns = -5");
    let line = 1 + broken.lines().position(|line| line == "hop_ns = -5").unwrap();
    fs::write(folder.path().join("mine.toml"), broken).unwrap();
    let says = format!("mine.toml:{line}: expected a number of 0 or more, found -5");
    refused(folder.path(), &["mine.toml"], &says);
}

#[test]
fn host_description_is_found_next_to_wisdom() {
    let folder = tempfile::tempdir().unwrap();
    refused(
        folder.path(),
        &["host"],
        "host.toml does not exist: `consort-lab calibrate` writes it",
    );
    let text = shown(folder.path(), &["cluster", "--source"]);
    fs::write(folder.path().join("host.toml"), text).unwrap();
    assert!(shown(folder.path(), &["host"]).starts_with("host: 1024 nodes"));
}

#[test]
fn unknown_machine_error_lists_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let known = names(folder.path()).join(", ");
    fails(
        folder.path(),
        &["ssc"],
        2,
        &format!("unknown machine `ssc`: expected {known}, or the path"),
    );
    refused(folder.path(), &["ssc.toml"], "cannot read ssc.toml: No such file");
}

/// Collects the keys of a value and of all values in it.
fn keys(value: &toml::Value, found: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                // The name of a parameter in a table is a path.
                let names = key.split('.').filter(|name| name.parse::<u32>().is_err());
                found.extend(names.map(str::to_owned));
                keys(value, found);
            }
        }
        toml::Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn documentation_explains_every_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/machines.md");
    let document = fs::read_to_string(path).unwrap();
    let words: BTreeSet<&str> =
        document.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').collect();
    let mut found = BTreeSet::new();
    for name in names(folder.path()) {
        let text = shown(folder.path(), &[&name, "--source"]);
        keys(&toml::from_str(&text).expect("TOML"), &mut found);
    }
    assert!(found.len() > 50, "{found:?}");
    let missing: Vec<&String> = found.iter().filter(|key| !words.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "docs/machines.md does not name {missing:?}");
}
