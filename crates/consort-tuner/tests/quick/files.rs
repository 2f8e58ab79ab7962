//! Wisdom as text and as a file: round trips, damage, and merging.

use std::{collections::BTreeMap, error::Error as _, fs};

use consort_fabric::{Candidate, Collective, OperatorClass, Query, SyncModes};
use consort_tuner::{
    Arrival, Confidence, Entry, Identity, IdentityMismatch, Revisions, Rigour, RunnerUp,
    TransferClass, Wisdom, WisdomError,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};

use crate::fake::{Fake, REDUCE};

/// Names of algorithms that every collective in this file has.
const ALGORITHMS: [&str; 5] = ["flat", "knomial", "ring", "tree", "a_b"];

fn identity() -> Identity {
    let all = Collective::EVERY.into_iter().flat_map(|one| ALGORITHMS.map(|name| (one, name, 1)));
    let revisions = Revisions::of(all);
    let machine = "EPYC \"9R14\", 2 cores\\threads";
    Identity { revisions, ..Identity::new(machine, &Fake::new(0)) }
}

/// A description of what disturbed a measurement.
const BUSY: &str = "12 % of processor time stolen, load \"3.2\" before the start";

prop_compose! {
    fn any_candidate()(
        algorithm in select(ALGORITHMS.to_vec()),
        parameters in vec(("[a-z_]{1,12}", any::<u64>()), 0..3),
        parts in select(vec![&[][..], &["flat", "tree"], &["flat", "ring", "tree"]]),
    ) -> Candidate {
        let parts = parts.iter().map(|part| Candidate::new(part).with("radix", 4));
        let bare = parts.fold(Candidate::new(algorithm), Candidate::of);
        parameters.iter().fold(bare, |candidate, (name, value)| candidate.with(name, *value))
    }
}

prop_compose! {
    fn any_entry()(
        reduce: bool,
        sync in select(SyncModes::every().collect::<Vec<_>>()),
        pes in 1_u32..,
        bytes in 0_u64..1 << 52,
        ordered: bool,
        symmetric: bool,
        choice in any_candidate(),
        median_ns in 0.1_f64..1e12,
        widths in option::of((0.0_f64..0.99, 0.0_f64..10.0)),
        second in option::of((any_candidate(), 1.0_f64..100.0)),
        class in option::of(select(&TransferClass::EVERY[..])),
        clear: bool,
        rigour in select(&Rigour::EVERY[1..]),
        undisturbed in 0..=100_u8,
        busy: bool,
    ) -> Entry {
        let collective = if reduce { Collective::Reduce } else { Collective::Broadcast };
        let operator = match ordered && reduce {
            true => OperatorClass::Ordered,
            false => OperatorClass::Commutative,
        };
        let interval = |(below, above): (f64, f64)| {
            ((median_ns * (1.0 - below)).max(0.1), median_ns * (1.0 + above))
        };
        let runner_up = second
            .map(|(candidate, ratio)| RunnerUp { candidate, median_ns: median_ns * ratio });
        let confidence = match (widths, &runner_up) {
            (None, _) => Confidence::Model,
            (_, None) => Confidence::Alone,
            _ if clear => Confidence::Clear,
            _ => Confidence::Tie,
        };
        Entry {
            contenders: Vec::new(),
            query: Query { collective, sync, pes, bytes, operator, symmetric },
            choice,
            median_ns,
            ci95_ns: widths.map(interval),
            runner_up,
            class,
            confidence,
            rigour: if widths.is_some() { rigour } else { Rigour::Estimate },
            undisturbed: f64::from(undisturbed) / 100.0,
            busy: (busy && widths.is_some()).then(|| BUSY.to_owned()),
        }
    }
}

fn wisdom_of(entries: Vec<Entry>) -> Wisdom {
    let mut wisdom = Wisdom::new(identity());
    entries.into_iter().for_each(|entry| wisdom.insert(entry));
    wisdom
}

/// A file of wisdom, as the crate `toml` reads and writes it.
#[derive(Deserialize, Serialize)]
struct File {
    wisdom: Head,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entry: Vec<Row>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: u64,
    library: String,
    machine: String,
    arrival: String,
    entries: usize,
    algorithms: BTreeMap<String, u32>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Row {
    collective: String,
    sync: String,
    pes: u32,
    bytes: u64,
    operator: String,
    symmetric: bool,
    choice: String,
    median_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ci95_ns: Option<(f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner_up: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner_up_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    margin: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    contenders: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undisturbed: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busy: Option<String>,
    confidence: String,
    rigour: String,
}

/// Returns two entries with everything that an entry can have.
fn sample() -> Wisdom {
    let full = Entry {
        query: REDUCE,
        choice: "knomial(radix=4)".parse().unwrap(),
        median_ns: 210.4,
        ci95_ns: Some((208.0, 213.5)),
        runner_up: Some(RunnerUp { candidate: Candidate::new("flat"), median_ns: 260.0 }),
        contenders: vec![Candidate::new("ring")],
        class: Some(TransferClass::Far),
        confidence: Confidence::Clear,
        rigour: Rigour::Measure,
        undisturbed: 0.37,
        busy: Some(BUSY.to_owned()),
    };
    let estimate = Entry {
        query: Query { bytes: 4096, ..REDUCE },
        ci95_ns: None,
        class: None,
        confidence: Confidence::Model,
        rigour: Rigour::Estimate,
        undisturbed: 1.0,
        busy: None,
        ..full.clone()
    };
    wisdom_of(vec![full, estimate])
}

fn loaded(bytes: &[u8]) -> Result<Wisdom, WisdomError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wisdom.toml");
    fs::write(&path, bytes).unwrap();
    Wisdom::load(&path, &identity())
}

/// Returns the line and the message of the error in `text`.
fn flaw(text: &str) -> (usize, String) {
    match loaded(text.as_bytes()) {
        Err(WisdomError::NotWisdom { line, message, .. }) => (line, message),
        other => panic!("expected a flaw, got {other:?}"),
    }
}

fn line_of(text: &str, part: &str) -> usize {
    1 + text[..text.find(part).unwrap()].matches('\n').count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn saved_wisdom_is_loaded(entries in vec(any_entry(), 0..12)) {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("deep/er/wisdom.toml");
        let wisdom = wisdom_of(entries);
        wisdom.save(&path)?;
        let again = Wisdom::load(&path, &identity())?;
        prop_assert_eq!(again.digest(), wisdom.digest());
        prop_assert_eq!(again, wisdom);
    }

    /// The crate reads the text, and writes the same one if no string needs an escape. So other
    /// versions compute the same digest of the same wisdom.
    #[test]
    fn text_matches_crate_toml(
        mut entries in vec(any_entry(), 0..6),
        contenders in vec(any_candidate(), 0..3),
        busy in "[a-z\"'\\\\é]{1,9}",
        machine in prop_oneof!["[a-z\"'\\\\\n\r\t\u{1}]{0,9}", any::<String>()],
    ) {
        for entry in entries.iter_mut().filter(|entry| entry.runner_up.is_some()) {
            entry.contenders.clone_from(&contenders);
        }
        for entry in entries.iter_mut().filter(|entry| entry.busy.is_some()) {
            entry.busy = Some(busy.clone());
        }
        let mut wisdom = Wisdom::new(Identity { machine: machine.clone(), ..identity() });
        entries.into_iter().for_each(|entry| wisdom.insert(entry));
        let text = wisdom.to_string();
        let (preface, rest) = text.split_once("\n\n").unwrap();
        prop_assert!(preface.lines().all(|line| line.starts_with("# ")), "{}", preface);
        let file: File = toml::from_str(&text)?;
        prop_assert_eq!(&file.wisdom.machine, &machine);
        for (row, entry) in file.entry.iter().zip(wisdom.entries()) {
            prop_assert_eq!(&row.choice, &entry.choice.to_string());
            prop_assert_eq!((row.median_ns, row.ci95_ns), (entry.median_ns, entry.ci95_ns));
            prop_assert_eq!((row.bytes, &row.busy), (entry.query.bytes, &entry.busy));
        }
        if !rest.contains('\\') {
            prop_assert_eq!(rest, toml::to_string(&file)?);
        }

        let directory = tempfile::tempdir()?;
        let path = directory.path().join("wisdom.toml");
        wisdom.save(&path)?;
        prop_assert_eq!(Wisdom::load(&path, wisdom.identity())?.digest(), wisdom.digest());
    }

    /// Damage is an error or does no harm; it never panics.
    #[test]
    fn damage_does_not_panic(
        entries in vec(any_entry(), 0..3),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = wisdom_of(entries).to_string().into_bytes();
        for (index, byte) in damage {
            let position = index.index(bytes.len());
            bytes[position] = byte;
        }
        let _ = loaded(&bytes);
    }

    #[test]
    fn arbitrary_text_is_an_error(text in "\\PC{0,200}") {
        prop_assert!(loaded(text.as_bytes()).is_err());
    }

    /// Merging in any order keeps the better of each.
    #[test]
    fn merge_keeps_the_better_entry(one in vec(any_entry(), 0..6), two in vec(any_entry(), 0..6)) {
        let (one, two) = (wisdom_of(one), wisdom_of(two));
        let mut merged = one.clone();
        merged.merge(two.clone())?;
        for entry in one.entries().chain(two.entries()) {
            prop_assert!(merged.entry(&entry.query).is_some_and(|e| e.rigour >= entry.rigour));
        }
        prop_assert_eq!(merged.clone().merge(two)?, 0, "nothing left to take");
    }
}

#[test]
fn truncated_file_is_refused_unless_nothing_is_lost() {
    let wisdom = sample();
    let text = wisdom.to_string();
    for length in 0..text.len() {
        if let Ok(cut) = loaded(&text.as_bytes()[..length]) {
            assert_eq!(cut, wisdom, "cut after {length} bytes");
        }
    }
    assert_eq!(loaded(text.as_bytes()).unwrap(), wisdom);
}

#[test]
fn flaws_are_named_with_their_line() {
    let text = sample().to_string();
    let cases = [
        ("median_ns = 210.4", "median_ns = \"fast\"", "expected f64"),
        ("median_ns = 210.4", "median_ns = nan", "median_ns must be a time"),
        ("median_ns = 210.4", "median_ns = -1.0", "median_ns must be a time"),
        ("median_ns = 210.4", "speed = 210.4", "unknown field `speed`"),
        ("choice = \"knomial(radix=4)\"", "choice = \"knomial(\"", "invalid candidate"),
        ("sync = \"mine\"", "sync = \"tight\"", "unknown synchronization mode"),
        ("margin = 0.2357", "margin = 0.5", "margin must be"),
        ("margin = 0.2357\n", "", "go together"),
        ("ci95_ns = [208.0, 213.5]", "ci95_ns = [213.5, 208.0]", "ci95_ns must be"),
        ("rigour = \"measure\"", "rigour = \"estimate\"", "ci95_ns belongs"),
        ("confidence = \"clear\"", "confidence = \"alone\"", "cannot be `alone`"),
        ("pes = 8", "pes = 0", "pes must be"),
        ("rigour = \"estimate\"", "busy = \"x\"\nrigour = \"estimate\"", "busy belongs"),
        ("bytes = 64", "bytes = 4096", "second entry"),
        ("entries = 2", "entries = 3", "expected 3 entries, found 2"),
        ("[[entry]]", "[[entri]]", "unknown field `entri`"),
        ("symmetric = true", "symmetric = true\nsymmetric = false", "duplicate key `symmetric`"),
        ("symmetric = true", "symmetric = 1", "expected a boolean"),
        ("ci95_ns = [208.0, 213.5]", "ci95_ns = [208.0]", "expected an array of 2 values"),
        ("[wisdom.algorithms]", "[wisdom.algorithm]", "unknown field `algorithm`"),
        ("entries = 2", "entries = -2", "expected usize"),
        ("rigour = \"measure\"\n", "", "missing field `rigour`"),
    ];
    for (good, bad, expected) in cases {
        assert!(text.contains(good), "{good} in {text}");
        let (line, message) = flaw(&text.replacen(good, bad, 1));
        assert!(message.contains(expected), "{bad}: {message}");
        assert!((1..=text.lines().count() + 1).contains(&line), "{bad}: line {line}");
        let is_of_value = ["expected f64", "describes", "no sync", "unknown"]
            .iter()
            .any(|start| expected.starts_with(start));
        if is_of_value {
            assert_eq!(line, line_of(&text, good), "{bad}: {message}");
        }
    }
    let mut binary = text.clone().into_bytes();
    let position = text.find("knomial").unwrap();
    binary[position] = 0xff;
    let error = loaded(&binary).unwrap_err().to_string();
    let expected = format!("wisdom.toml:{}: not wisdom", line_of(&text, "knomial"));
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn wisdom_that_does_not_fit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wisdom.toml");
    sample().save(&path).unwrap();
    let here = identity();
    let refusal = |identity: &Identity| Wisdom::load(&path, identity).unwrap_err().to_string();

    let other = Identity { machine: "SCC".to_owned(), ..here.clone() };
    let text = refusal(&other);
    assert!(text.contains("EPYC") && text.contains("`SCC`"), "{text}");
    assert!(text.contains("--wisdom") && text.contains("CONSORT_WISDOM"), "{text}");
    let other = Identity { library: "99.0.0".to_owned(), ..here.clone() };
    assert_eq!(Wisdom::load(&path, &other).unwrap().entries().len(), 2, "nothing has changed");
    let other = Identity { revisions: Revisions::default(), ..here.clone() };
    assert!(refusal(&other).contains("out of date"));
    let text = refusal(&here.clone().with(Arrival::Skewed));
    assert!(text.contains("tuned for together arrival, but this job uses skewed"), "{text}");
    let unfitted = Wisdom::load_unfitted(&path).unwrap();
    assert_eq!(unfitted.to_string(), sample().to_string());

    let text = sample().to_string().replacen("format = 3", "format = 4\nnew = true", 1);
    let error = loaded(text.as_bytes()).unwrap_err();
    assert!(matches!(error, WisdomError::OtherFormat { theirs: 4, ours: 3, .. }), "{error}");

    let missing = Wisdom::load(&directory.path().join("none.toml"), &here).unwrap_err();
    assert!(matches!(missing, WisdomError::NotFound { .. }) && missing.source().is_none());
    let unreadable = Wisdom::load(directory.path(), &here).unwrap_err();
    assert!(matches!(unreadable, WisdomError::Unreadable { .. }) && unreadable.source().is_some());
}

#[test]
fn failed_save_leaves_the_old_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wisdom.toml");
    sample().save(&path).unwrap();
    let below_a_file = path.join("wisdom.toml");
    let error = sample().save(&below_a_file).unwrap_err();
    assert!(matches!(error, WisdomError::Unwritable { .. }) && error.source().is_some(), "{error}");
    assert_eq!(Wisdom::load(&path, &identity()).unwrap(), sample());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn symbolic_link_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let (target, link) = (directory.path().join("kept.toml"), directory.path().join("link.toml"));
    Wisdom::new(identity()).save(&target).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    sample().save(&link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(Wisdom::load(&target, &identity()).unwrap(), sample());
}

#[test]
fn merge_prefers_rigour_then_narrower_interval() {
    let base = sample().entry(&REDUCE).unwrap().clone();
    let wide = Entry { ci95_ns: Some((200.0, 220.0)), ..base.clone() };
    let patient = Entry { rigour: Rigour::Patient, ..wide.clone() };
    let merged = |own: &Entry, other: &Entry| {
        let mut wisdom = wisdom_of(vec![own.clone()]);
        let taken_count = wisdom.merge(wisdom_of(vec![other.clone()])).unwrap();
        (wisdom.entry(&REDUCE).unwrap().clone(), taken_count)
    };
    assert_eq!(merged(&wide, &base), (base.clone(), 1));
    assert_eq!(merged(&base, &wide), (base.clone(), 0));
    assert_eq!(merged(&base, &patient), (patient.clone(), 1));
    assert_eq!(merged(&patient, &base), (patient.clone(), 0));

    let idle = Entry { busy: None, ..wide.clone() };
    assert!(base.busy.is_some() && base.ci95_ns != wide.ci95_ns);
    assert_eq!(merged(&base, &idle), (idle.clone(), 1), "an idle machine outranks a busy one");
    assert_eq!(merged(&idle, &base), (idle.clone(), 0));
    assert_eq!(merged(&idle, &patient), (patient.clone(), 1), "rigour outranks both");

    let mut elsewhere = Wisdom::new(Identity { machine: "SCC".to_owned(), ..identity() });
    let refused = elsewhere.merge(sample()).unwrap_err();
    assert!(matches!(refused, IdentityMismatch::OtherMachine { .. }));
    assert_eq!(elsewhere.entries().len(), 0);
}

#[test]
fn measured_entries_are_marked_and_estimates_are_not() {
    let mut wisdom = sample();
    let queries: Vec<Query> = wisdom.entries().map(|entry| entry.query).collect();
    wisdom.mark_busy(&queries, "load 7.0 before the start");
    wisdom.mark_busy(&[Query { bytes: 9, ..REDUCE }], "nothing is known of this");
    let marks: Vec<Option<&str>> = wisdom.entries().map(|entry| entry.busy.as_deref()).collect();
    assert_eq!(marks, [Some("load 7.0 before the start"), None]);
    assert_eq!(wisdom.entry(&REDUCE).unwrap().choice, sample().entry(&REDUCE).unwrap().choice);
}

/// Earlier versions wrote no marks.
#[test]
fn wisdom_without_marks_is_loaded() {
    let mut idle = sample().entry(&REDUCE).unwrap().clone();
    idle.busy = None;
    let text = wisdom_of(vec![idle.clone()]).to_string();
    assert!(!text.contains("busy"), "{text}");
    assert_eq!(loaded(text.as_bytes()).unwrap().entry(&REDUCE), Some(&idle));
}

#[test]
#[should_panic(expected = "busy must be one line")]
fn busy_mark_must_be_one_line() {
    sample().mark_busy(&[REDUCE], "load 7.0\nbefore the start");
}

/// Returns an identity with algorithms of these revisions.
fn of_revisions(reduce: u32, broadcast: u32) -> Identity {
    let all = [
        (Collective::Reduce, "knomial", reduce),
        (Collective::Reduce, "flat", 1),
        (Collective::Broadcast, "knomial", broadcast),
        (Collective::Broadcast, "two_level", 1),
    ];
    Identity { revisions: Revisions::of(all), ..Identity::new("m", &Fake::new(0)) }
}

#[test]
fn entries_of_algorithms_that_have_changed_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wisdom.toml");
    let mut wisdom = Wisdom::new(of_revisions(1, 1));
    let entry = |query, choice: &str| Entry::alone(query, choice.parse().unwrap(), 100.0);
    let flat = entry(REDUCE, "flat");
    let runner_up = RunnerUp { candidate: Candidate::new("knomial"), median_ns: 200.0 };
    wisdom.insert(Entry {
        runner_up: Some(runner_up),
        confidence: Confidence::Clear,
        ..flat.clone()
    });
    let long = Query { bytes: 1 << 20, ..REDUCE };
    wisdom.insert(entry(long, "knomial(radix=2)"));
    let broadcast = Query { collective: Collective::Broadcast, ..REDUCE };
    wisdom.insert(entry(broadcast, "two_level(knomial(radix=2),knomial(radix=2))"));
    wisdom.save(&path).unwrap();
    let load = |reduce, broadcast| Wisdom::load(&path, &of_revisions(reduce, broadcast)).unwrap();

    let same = load(1, 1);
    assert_eq!((same.entries().len(), same.outdated()), (3, 0));
    // A part is identified by its name alone, whatever its collective.
    let changed = load(2, 1);
    assert_eq!((changed.entries().len(), changed.outdated()), (1, 2));
    assert_eq!(changed.entry(&REDUCE), Some(&flat), "a runner-up that has changed is forgotten");
    let changed = load(1, 2);
    assert_eq!((changed.entries().len(), changed.outdated()), (2, 1));
    assert!(changed.entry(&broadcast).is_none(), "its parts have changed");
    assert_eq!(load(2, 2).entries().len(), 1);

    let mut gone = of_revisions(1, 1);
    gone.revisions = Revisions::default();
    let refused = Wisdom::load(&path, &gone).unwrap_err().to_string();
    assert!(
        refused.contains("out of date, because all its algorithms have changed since version"),
        "{refused}"
    );
}

#[test]
#[should_panic(expected = "unsound entry")]
fn an_unsound_entry_is_not_taken() {
    let entry = sample().entry(&REDUCE).unwrap().clone();
    wisdom_of(vec![Entry { median_ns: f64::NAN, ..entry }]);
}
