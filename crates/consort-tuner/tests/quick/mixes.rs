//! Recorded calls: which calls are recorded as one, round trips, and unreadable files.

use std::{fs, path::Path, process::Command};

use consort_fabric::{Collective, OperatorClass, Query, SyncModes};
use consort_tuner::Mix;
use serde::{Deserialize, Serialize};

use crate::fake::REDUCE;

fn at(bytes: u64) -> Query {
    Query { bytes, ..REDUCE }
}

#[test]
fn sizes_are_recorded_as_the_nearest_power_of_two() {
    for (bytes, recorded) in
        [(0, 8), (8, 8), (11, 8), (12, 16), (90, 64), (91, 128), (4096, 4096), (u64::MAX, 1 << 52)]
    {
        assert_eq!(Mix::recorded_as(&at(bytes)).bytes, recorded, "{bytes}");
    }
    let barrier = Query { collective: Collective::Barrier, sync: SyncModes::LOOSE, ..at(64) };
    assert_eq!(
        (Mix::recorded_as(&barrier).bytes, Mix::recorded_as(&barrier).sync),
        (0, SyncModes::STRICT)
    );
    let vector = Query { collective: Collective::AllToAllVector, ..at(0) };
    assert_eq!(Mix::recorded_as(&vector).bytes, 0);
}

#[test]
fn jobs_append_and_their_calls_are_added_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.toml");
    let (mut one, mut other) = (Mix::default(), Mix::default());
    one.add(&at(60), 3);
    one.add(&at(64), 4);
    one.add(&Query { sync: SyncModes::STRICT, ..at(8) }, 1);
    other.add(&at(64), u64::MAX);
    other.add(&Query { collective: Collective::Barrier, ..at(0) }, 5);
    one.append(&path).unwrap();
    other.append(&path).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text.matches("[[calls]]").count(),
        4,
        "one table for each kind of call of each job: {text}"
    );
    let mut both = one.clone();
    both.merge(&other);
    assert_eq!(Mix::load(&path).unwrap(), both);
    let of_reduce = both.calls().find(|(query, _)| *query == at(64)).unwrap();
    assert_eq!(of_reduce.1, i64::MAX as u64, "the sum is limited");
}

/// A file of recorded calls, as the crate `toml` reads and writes it.
#[derive(Deserialize, Serialize)]
struct Recorded {
    calls: Vec<Kind>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    format: u64,
    collective: String,
    sync: String,
    pes: u32,
    bytes: u64,
    operator: String,
    symmetric: bool,
    calls: u64,
}

#[test]
fn text_matches_crate_toml() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.toml");
    let mut mix = Mix::default();
    mix.add(&at(64), u64::MAX);
    mix.add(&Query { collective: Collective::Barrier, ..at(0) }, 5);
    mix.append(&path).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let file: Recorded = toml::from_str(&text).unwrap();
    assert_eq!(file.calls.len(), 2);
    assert_eq!(text, format!("\n{}", toml::to_string(&file).unwrap()));
}

#[test]
fn tunable_mix_merges_equivalent_calls() {
    let mut mix = Mix::default();
    mix.add(&Query { operator: OperatorClass::Ordered, ..at(8) }, 2);
    mix.add(&at(8), 3);
    mix.add(&Query { collective: Collective::GatherVector, ..at(0) }, 7);
    assert_eq!(mix.calls().len(), 3);
    let tunable: Vec<(Query, u64)> = mix.tunable().calls().collect();
    assert_eq!(tunable, [(at(8), 5)]);
}

#[test]
fn invalid_record_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.toml");
    let refused = |text: &[u8], part: &str| {
        fs::write(&path, text).unwrap();
        let error = Mix::load(&path).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("calls.toml"), "`{part}` in {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    };
    assert!(Mix::load(&path).unwrap_err().to_string().contains("cannot read"));
    refused(b"", "no recorded calls");
    refused(b"\n\n", "CONSORT_RECORD=");
    let mut mix = Mix::default();
    mix.add(&at(8), 3);
    fs::remove_file(&path).unwrap();
    mix.append(&path).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let other = text.replace("format = 1", "format = 2");
    refused(format!("{text}{other}").as_bytes(), ":12: calls recorded in format 2");
    let cut = text.find("calls = ").unwrap();
    refused(format!("{text}{}", &text[..cut]).as_bytes(), "missing field `calls`");
    refused(
        text.replace("reduce", "rescue").as_bytes(),
        ":4: not a file of recorded calls: unknown collective `rescue`",
    );
    refused(text.replace("calls = 3", "calls = 0").as_bytes(), "at least 1");
    refused(text.replace("calls = 3", "times = 3").as_bytes(), "unknown field `times`");
    refused(
        format!("{text}calls = 3\n").as_bytes(),
        ":11: not a file of recorded calls: duplicate key `calls`",
    );
    refused(
        format!("{text}\nday = 2026-01-01\n").as_bytes(),
        ":12: not a file of recorded calls: a date",
    );
    refused(b"{\"record\": 1}", ":1: not a file of recorded calls");
    refused(b"\xff\xfe{}", ":1: not a file of recorded calls: expected text in UTF-8");
}

#[test]
fn unrelated_file_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.toml");
    let mut mix = Mix::default();
    mix.add(&at(8), 3);
    let refused = |path: &Path, part: &str| {
        let error = mix.append(path).unwrap_err().to_string();
        assert!(error.contains(part) && error.lines().count() == 1, "`{part}` in {error}");
    };
    mix.append(&path).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let of_later = text.replace("format = 1", "format = 10");
    for (other, part) in [
        ("format = 3\n[[entries]]\n", "into another file"),
        ("a letter", "into another file"),
        ("[[calls]]\nformat = 1", "missing field"),
        (&of_later, "format 10"),
    ] {
        fs::write(&path, other).unwrap();
        refused(&path, part);
        assert_eq!(fs::read_to_string(&path).unwrap(), other);
    }
    for edited in ["", "\n\n", "# of Monday\n", &format!("# of Monday\n{text}")] {
        fs::write(&path, edited).unwrap();
        mix.append(&path).unwrap();
        assert!(fs::read_to_string(&path).unwrap().starts_with(edited));
        assert!(Mix::load(&path).is_ok());
    }
    refused(folder.path(), "not a regular file");
    refused(Path::new("/dev/null"), "not a regular file");
    refused(&path.join("below"), "cannot write");
    refused(&folder.path().join("absent/calls.toml"), "cannot write");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    refused(&pipe, "not a regular file");
}
