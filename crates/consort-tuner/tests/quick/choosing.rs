//! Choices: the entry that answers a query, and the same answer from a table.

use consort_fabric::{CallSpec, Candidate, Collective, OperatorClass, Query, SyncModes};
use consort_tuner::{
    ChosenBy, Confidence, Entry, Identity, Measurements, Rigour, RunnerUp, Sample, Selection,
    Selector, Table, TransferClass, Wisdom,
};
use proptest::{collection::vec, prelude::*, sample::select};

use crate::fake::{Fake, LARGEST_ELEMENT, LINE_BYTES, REDUCE};

const CORES: usize = 8;

fn entry(query: Query, choice: &str) -> Entry {
    Entry {
        query,
        choice: choice.parse().unwrap(),
        median_ns: 100.0,
        ci95_ns: Some((98.0, 103.0)),
        runner_up: Some(RunnerUp { candidate: Candidate::new("flat"), median_ns: 125.0 }),
        contenders: Vec::new(),
        class: Some(TransferClass::Far),
        confidence: Confidence::Clear,
        rigour: Rigour::Measure,
        undisturbed: 1.0,
        busy: None,
    }
}

fn wisdom(entries: impl IntoIterator<Item = Entry>) -> Wisdom {
    let mut wisdom = Wisdom::new(Identity::new("paper", &Fake::new(0)));
    entries.into_iter().for_each(|entry| wisdom.insert(entry));
    wisdom
}

/// Whether an entry of wisdom is for exactly this query.
const EXACT: bool = true;
const NEAREST: bool = false;

/// Returns the choice of wisdom, and checks that a table has the same.
fn chosen(wisdom: &Wisdom, query: Query) -> Option<(String, bool)> {
    let bench = Fake::new(0);
    let entry = wisdom.answer(&bench, &query, CORES);
    let candidate = entry.map(|entry| &entry.choice);
    assert_eq!(Table::new(wisdom, &bench, query.pes, CORES).look_up(&query), candidate);
    let is_exact = |entry: &Entry| {
        let selected = select_by(Measurements::Wisdom(wisdom, CORES), &bench, query);
        assert_eq!((selected.by, &*selected.candidate), (ChosenBy::Wisdom, &entry.choice));
        selected.is_exact()
    };
    entry.map(|entry| (entry.choice.to_string(), is_exact(entry)))
}

fn select_by<'a>(measured: Measurements<'a>, bench: &'a Fake, query: Query) -> Selection<'a> {
    Selector::new(bench, measured).select(&CallSpec::from(&query)).expect("there are candidates")
}

fn at(pes: u32, bytes: u64) -> Query {
    Query { pes, bytes, ..REDUCE }
}

#[test]
fn the_nearest_size_answers_on_a_logarithmic_scale() {
    let wisdom = wisdom([entry(at(8, 64), "flat"), entry(at(8, 4096), "knomial(radix=2)")]);
    let flat = |is_exact| Some(("flat".to_owned(), is_exact));
    let tree = |is_exact| Some(("knomial(radix=2)".to_owned(), is_exact));
    assert_eq!(chosen(&wisdom, at(8, 64)), flat(EXACT));
    assert_eq!(chosen(&wisdom, at(8, 512)), flat(NEAREST));
    assert_eq!(chosen(&wisdom, at(8, 513)), tree(NEAREST));
    assert_eq!(chosen(&wisdom, at(8, 0)), None, "below the reach of 64 bytes");
    assert_eq!(chosen(&wisdom, at(8, 1)), flat(NEAREST));
    assert_eq!(chosen(&wisdom, at(8, 4096 * 64)), tree(NEAREST));
    assert_eq!(chosen(&wisdom, at(8, 4096 * 64 + 1)), None);
}

#[test]
fn nearest_team_on_the_same_side_of_the_core_count_answers() {
    let wisdom = wisdom([
        entry(at(2, 64), "flat"),
        entry(at(8, 64), "knomial(radix=1)"),
        entry(at(16, 64), "knomial(radix=2)"),
    ]);
    let name = |pes| chosen(&wisdom, at(pes, 64)).map(|(name, _)| name);
    assert_eq!(name(3).as_deref(), Some("flat"));
    assert_eq!(name(4).as_deref(), Some("flat"), "the smaller of two equally near");
    assert_eq!(name(5).as_deref(), Some("knomial(radix=1)"));
    assert_eq!(name(9).as_deref(), Some("knomial(radix=2)"), "more PEs than cores");
    assert_eq!(name(64).as_deref(), Some("knomial(radix=2)"));
    assert_eq!(name(65), None, "beyond reach");
}

#[test]
fn entry_of_another_kind_is_not_used() {
    let wisdom = wisdom([entry(REDUCE, "flat")]);
    for other in [
        Query { collective: Collective::Broadcast, ..REDUCE },
        Query { operator: OperatorClass::Ordered, ..REDUCE },
        Query { symmetric: false, ..REDUCE },
    ] {
        assert_eq!(chosen(&wisdom, other), None, "{other:?}");
    }
}

#[test]
fn nearest_modes_answer_if_exact_ones_are_unmeasured() {
    let [none_mine, mine_none, mine_all, all_mine] =
        ["none/mine", "mine/none", "mine/all", "all/mine"].map(|sync| sync.parse().unwrap());
    let of = |sync, choice: &str| entry(Query { sync, ..REDUCE }, choice);
    let estimate = Entry {
        ci95_ns: None,
        confidence: Confidence::Model,
        rigour: Rigour::Estimate,
        ..of(none_mine, "knomial(radix=1)")
    };
    let known = [
        of(SyncModes::MINE, "flat"),
        of(SyncModes::STRICT, "knomial(radix=2)"),
        of(SyncModes::LOOSE, "knomial(radix=3)"),
        estimate.clone(),
    ];
    let all = wisdom(known.clone());
    let name = |sync| chosen(&all, Query { sync, ..REDUCE });
    assert_eq!(name(SyncModes::MINE), Some(("flat".to_owned(), EXACT)));
    assert_eq!(name(none_mine), Some(("flat".to_owned(), NEAREST)), "before an estimate");
    assert_eq!(name(all_mine), Some(("flat".to_owned(), NEAREST)));
    assert_eq!(name(mine_none), Some(("knomial(radix=3)".to_owned(), NEAREST)));
    assert_eq!(name(mine_all), Some(("knomial(radix=2)".to_owned(), NEAREST)));
    // A measured entry in the same modes is used as far as it reaches, and others beyond.
    let far = Entry { query: at(8, 1 << 20), ..known[0].clone() };
    let near = Entry { query: Query { sync: none_mine, ..at(8, 8) }, ..known[1].clone() };
    let mixed = wisdom([far, near]);
    let name =
        |bytes| chosen(&mixed, Query { sync: none_mine, ..at(8, bytes) }).map(|(name, _)| name);
    assert_eq!(name(512).as_deref(), Some("knomial(radix=2)"));
    assert_eq!(name(1024), None, "beyond the reach of both");
    assert_eq!(name(1 << 15).as_deref(), Some("flat"));
    // Without measurements, the estimate is used.
    assert_eq!(chosen(&wisdom([estimate]), Query { sync: none_mine, ..REDUCE }).unwrap().1, EXACT);
    let bench = Fake::new(0);
    let text =
        select_by(Measurements::Wisdom(&all, CORES), &bench, Query { sync: mine_all, ..REDUCE });
    let text = text.to_string();
    assert!(
        text.contains("expected: not known, measured in modes strict\n  there: 100 ns"),
        "{text}"
    );
    assert!(text.ends_with("nearest wisdom, of strict reduce of 64 B on 8 PEs, symmetric"));
}

#[test]
fn choice_answers_only_queries_it_can_serve() {
    let wisdom = wisdom([entry(at(8, 8), "line"), entry(at(8, 8192), "knomial(radix=2)")]);
    let name = |bytes| chosen(&wisdom, at(8, bytes)).map(|(name, _)| name);
    assert_eq!(name(LINE_BYTES).as_deref(), Some("line"));
    assert_eq!(name(LINE_BYTES + 1), None, "nor does the other reach so far down");
    assert_eq!(name(128).as_deref(), Some("knomial(radix=2)"), "though 8 bytes is nearer");
    // A tree of radix 4 cannot serve four PEs.
    let wide = entry(at(8, 64), "knomial(radix=4)");
    let wisdom = self::wisdom([wide]);
    assert_eq!(chosen(&wisdom, at(4, 64)), None);
    let bench = Fake::new(0);
    let selected = select_by(Measurements::Wisdom(&wisdom, CORES), &bench, at(4, 64));
    assert_eq!(selected.by, ChosenBy::Model);
}

#[test]
fn barrier_entry_ignores_other_arguments() {
    let barrier = Query { collective: Collective::Barrier, sync: SyncModes::STRICT, ..at(8, 0) };
    let wisdom = wisdom([entry(barrier, "flat")]);
    let odd = Query { sync: SyncModes::MINE, bytes: 8, symmetric: false, ..barrier };
    assert_eq!(chosen(&wisdom, odd), Some(("flat".to_owned(), EXACT)));
    let table = Table::new(&wisdom, &Fake::new(0), 8, CORES);
    assert_eq!(table.look_up(&odd), Some(&Candidate::new("flat")));
}

#[test]
fn a_choice_explains_itself() {
    let wisdom = wisdom([entry(at(8, 64), "knomial(radix=2)")]);
    let bench = Fake::new(0);
    let explain = |query| select_by(Measurements::Wisdom(&wisdom, CORES), &bench, query);
    assert_eq!(
        explain(at(8, 64)).to_string(),
        "mine reduce of 64 B on 8 PEs, symmetric: knomial(radix=2)\n  \
         expected: 100 ns (95 % interval 98.0 ns to 103 ns), measure, cores far\n  \
         runner-up: flat, 125 ns, +25.0 %, clear\n  \
         from: wisdom for this query"
    );
    let single = Entry { ci95_ns: Some((100.0, 100.0)), ..entry(at(8, 64), "knomial(radix=2)") };
    let single = self::wisdom([single]);
    let text = select_by(Measurements::Wisdom(&single, CORES), &bench, at(8, 64)).to_string();
    assert!(text.contains("expected: 100 ns (one sample), measure"), "{text}");
    assert!(text.contains("+25.0 %, of one sample\n") && !text.contains("interval"), "{text}");
    let near = explain(at(8, 100)).to_string();
    assert!(near.contains("expected: not known, measured for 64 B\n  there: 100 ns"), "{near}");
    assert!(near.ends_with("nearest wisdom, of mine reduce of 64 B on 8 PEs, symmetric"));
    let model = explain(at(64, 64)).to_string();
    assert!(model.contains("\n  model: ") && !model.contains("expected"), "{model}");
    assert!(model.contains("by the model") && model.ends_with("has no entry for it"), "{model}");
}

#[test]
fn expected_time_needs_a_measured_team_size() {
    let wisdom = wisdom([entry(at(2, 64), "flat"), entry(at(8, 64), "knomial(radix=1)")]);
    let bench = Fake::new(0);
    let explain =
        |pes| select_by(Measurements::Wisdom(&wisdom, CORES), &bench, at(pes, 64)).to_string();
    assert!(explain(2).contains("\n  expected: 100 ns"));
    let of_four = explain(4);
    assert!(of_four.contains("expected: not known, measured for 2 and 8 PEs\n"), "{of_four}");
    assert!(of_four.contains("\n  there: 100 ns") && of_four.contains("64 B on 2 PEs"));
}

#[test]
fn the_model_answers_with_its_favourite() {
    let bench = Fake::new(0);
    let selected = select_by(Measurements::Nothing, &bench, at(8, 8));
    let entry = selected.entry.expect("what the model expects");
    assert_eq!((selected.by, entry.rigour), (ChosenBy::Model, Rigour::Estimate));
    let second = entry.runner_up.as_ref().unwrap();
    assert!(second.median_ns >= entry.median_ns);
}

/// It may have other names with equal estimates, which are not runners-up.
#[test]
fn model_runner_up_is_not_an_equal_candidate() {
    let favourite = |bench: &Fake| {
        let entry = select_by(Measurements::Nothing, bench, at(8, 64)).entry.expect("an estimate");
        (entry.choice.clone(), entry.runner_up.clone().expect("a runner-up").candidate)
    };
    let (choice, second) = favourite(&Fake::new(0));
    assert_eq!(choice.algorithm, second.algorithm, "the two best are candidates of one algorithm");
    let mut bench = Fake::new(0);
    bench.alike = Some("knomial");
    let (choice, second) = favourite(&bench);
    assert_eq!(choice.algorithm, "knomial");
    assert_ne!(second.algorithm, "knomial");
}

#[test]
fn forced_candidate_comes_first() {
    let wisdom = wisdom([entry(at(8, 64), "flat")]);
    let (bench, named) = (Fake::new(0), Candidate::new("named"));
    let measured = Measurements::Wisdom(&wisdom, CORES);
    let selector = Selector { forced: Some(&named), ..Selector::new(&bench, measured) };
    let call = CallSpec::from(&at(8, 64));
    let selected = selector.select(&call).unwrap();
    assert_eq!((selected.by, &*selected.candidate), (ChosenBy::Force, &named));
    assert_eq!(selector.contestants(&call), [named]);
}

/// Refinement tries what tuning kept or, if it kept nothing, what the model estimates to be good.
#[test]
fn contestants_are_kept_by_tuning() {
    let call = CallSpec::from(&at(8, 64));
    let tree = |radix| Candidate::new("knomial").with("radix", radix);
    let tuned =
        Entry { contenders: vec![tree(2), tree(1)], ..entry(at(8, 64), "knomial(radix=4)") };
    let bench = Fake::new(0);
    let all = |wisdom: &Wisdom| {
        let table = Table::new(wisdom, &bench, 8, CORES);
        let [of_wisdom, of_table] =
            [Measurements::Wisdom(wisdom, CORES), Measurements::Table(&table)]
                .map(|measured| Selector::new(&bench, measured).contestants(&call));
        assert_eq!(of_wisdom, of_table);
        of_wisdom
    };
    let alternatives = [tree(4), Candidate::new("flat"), tree(2), tree(1)];
    assert_eq!(all(&wisdom([tuned.clone()])), alternatives);
    let alone = Entry::alone(at(8, 64), tree(4), 100.0);
    assert!(all(&wisdom([alone])).len() > alternatives.len());
    let (ci95_ns, confidence, rigour) = (None, Confidence::Model, Rigour::Estimate);
    let estimate = Entry { ci95_ns, confidence, rigour, contenders: Vec::new(), ..tuned };
    assert!(all(&wisdom([estimate])).len() > alternatives.len(), "an estimate has kept nothing");
}

/// Candidates that tuning kept may not be able to serve elements larger than the measured ones.
#[test]
fn contestants_can_serve_the_elements() {
    let line = Some(RunnerUp { candidate: Candidate::new("line"), median_ns: 125.0 });
    let wisdom = wisdom([Entry { runner_up: line, ..entry(at(8, 8), "flat") }]);
    let bench = Fake::new(0);
    let table = Table::new(&wisdom, &bench, 8, CORES);
    let call = CallSpec::from(&at(8, 8));
    let large = CallSpec { element_bytes: 2 * LARGEST_ELEMENT, ..call };
    for measured in [Measurements::Wisdom(&wisdom, CORES), Measurements::Table(&table)] {
        let selector = Selector::new(&bench, measured);
        assert!(selector.contestants(&call).contains(&Candidate::new("line")));
        assert!(!selector.contestants(&large).contains(&Candidate::new("line")));
    }
}

#[test]
fn identical_contestants_are_merged() {
    let call = CallSpec::from(&at(8, 64));
    let trees = |bench: &Fake, measured| -> Vec<Candidate> {
        let all = Selector::new(bench, measured).contestants(&call);
        all.into_iter().filter(|one| one.algorithm == "knomial").collect()
    };
    let mut alike = Fake::new(0);
    alike.alike = Some("knomial");
    assert!(trees(&Fake::new(0), Measurements::Nothing).len() > 2);
    assert_eq!(trees(&alike, Measurements::Nothing).len(), 1);
    let wisdom = wisdom([entry(at(8, 64), "knomial(radix=4)")]);
    let of_wisdom = Candidate::new("knomial").with("radix", 4);
    assert_eq!(trees(&alike, Measurements::Wisdom(&wisdom, CORES)), [of_wisdom]);
}

#[test]
fn a_time_measured_at_another_size_is_scaled() {
    let (bench, wisdom) = (Fake::new(0), wisdom([entry(at(8, 64), "flat")]));
    let selector = Selector::new(&bench, Measurements::Wisdom(&wisdom, CORES));
    let expected_ns = |query| {
        let selected = selector.select(&CallSpec::from(&query)).expect("a choice");
        selector.expected_ns(&selected).expect("an entry")
    };
    assert_eq!(expected_ns(at(8, 64)), 100.0);
    let flat = Candidate::new("flat");
    let times = Fake::true_ns(&at(8, 4096), &flat) / Fake::true_ns(&at(8, 64), &flat);
    assert!(times > 5.0 && (expected_ns(at(8, 4096)) / 100.0 - times).abs() < 1e-9);
    let selected = select_by(Measurements::Nothing, &bench, at(8, 64));
    let entry_ns = selected.entry.as_ref().map(|entry| entry.median_ns);
    assert_eq!(Selector::new(&bench, Measurements::Nothing).expected_ns(&selected), entry_ns);
}

#[test]
fn candidate_unable_to_serve_elements_is_skipped() {
    let wisdom = wisdom([entry(at(8, 8), "line")]);
    let bench = Fake::new(0);
    let table = Table::new(&wisdom, &bench, 8, CORES);
    for measured in [Measurements::Wisdom(&wisdom, CORES), Measurements::Table(&table)] {
        let selector = Selector::new(&bench, measured);
        let call = CallSpec::from(&at(8, 8));
        assert_eq!(selector.select(&call).unwrap().by, ChosenBy::Wisdom);
        assert_eq!(selector.contestants(&call)[0], Candidate::new("line"));
        let large = CallSpec { element_bytes: 2 * LARGEST_ELEMENT, ..call };
        let selected = selector.select(&large).unwrap();
        assert_eq!(selected.by, ChosenBy::Model);
        assert_ne!(*selected.candidate, Candidate::new("line"));
        assert!(!selector.contestants(&large).contains(&Candidate::new("line")));
    }
}

#[test]
fn ordered_reduction_uses_commutative_measurements() {
    let wisdom = wisdom([entry(at(8, 64), "flat")]);
    let bench = Fake::new(0);
    let ordered = Query { operator: OperatorClass::Ordered, ..at(8, 64) };
    let selected = select_by(Measurements::Wisdom(&wisdom, CORES), &bench, ordered);
    assert_eq!((selected.by, selected.is_exact()), (ChosenBy::Wisdom, true));
}

prop_compose! {
    fn any_query()(
        collective in select(&Collective::EVERY),
        sync in select(SyncModes::every().collect::<Vec<_>>()),
        pes in select(&[1_u32, 2, 3, 8, 16][..]),
        power in 0_u32..24,
        offset in 0_u64..3,
        operator in select(&[OperatorClass::Commutative, OperatorClass::Ordered][..]),
        symmetric: bool,
    ) -> Query {
        Query { collective, sync, pes, bytes: (1 << power) + offset - 1, operator, symmetric }
    }
}

prop_compose! {
    fn row_entry()(
        pes in select(&[2_u32, 4, 8, 16][..]),
        power in 0_u32..24,
        sync in select(&[SyncModes::MINE, SyncModes::LOOSE][..]),
        choice in select(&["flat", "line", "knomial(radix=1)", "knomial(radix=3)"][..]),
    ) -> Entry {
        entry(Query { pes, sync, bytes: 1 << power, ..REDUCE }, choice)
    }
}

proptest! {
    /// A table gives the same answer as a search through wisdom, and its choice can serve the
    /// query.
    #[test]
    fn a_table_answers_as_wisdom_does(
        entries in vec(row_entry(), 0..20),
        queries in vec(any_query(), 1..20),
        bytes in vec(0_u64..100_000, 1..20),
    ) {
        let bench = Fake::new(0);
        let wisdom = wisdom(entries);
        let of_the_row = bytes.iter().map(|&bytes| Query { bytes, ..REDUCE });
        for query in queries.into_iter().chain(of_the_row) {
            let table = Table::new(&wisdom, &bench, query.pes, CORES);
            let by_wisdom = wisdom.answer(&bench, &query, CORES).map(|entry| &entry.choice);
            prop_assert_eq!(table.look_up(&query), by_wisdom);
            if let Some(candidate) = by_wisdom {
                prop_assert!(candidate.algorithm != "line" || query.bytes <= LINE_BYTES);
            }
        }
    }
}

/// As when `tune` compares its choices with simpler algorithms.
#[test]
fn faster_rival_replaces_a_choice_only_beyond_both_intervals() {
    let near = Some(TransferClass::Near);
    let sample = |low: f64, high: f64, launches| {
        let (median_ns, ci95_ns) = ((low + high) / 2.0, (low, high));
        Sample { median_ns, ci95_ns, p99_ns: high, launches, class: near }
    };
    let (rigour, flat) = (Rigour::Exhaustive, Candidate::new("flat"));
    let own_entry = entry(at(2, 8), "knomial(radix=2)");
    let entry = Entry { class: near, rigour, ..own_entry };
    let (own, faster) = (sample(200.0, 220.0, 8), sample(160.0, 170.0, 8));
    let beaten = entry.beaten_by(&flat, &faster, &own).expect("it is faster");
    assert_eq!((beaten.choice.algorithm.as_str(), beaten.median_ns), ("flat", 165.0));
    assert_eq!(beaten.runner_up.as_ref().unwrap().candidate, entry.choice);
    assert!(beaten.contenders.is_empty(), "flat was the runner-up");
    assert_eq!((beaten.confidence, beaten.rigour), (Confidence::Clear, Rigour::Measure));
    let mut all = wisdom([entry.clone()]);
    all.insert(beaten);
    assert_eq!(chosen(&all, at(2, 8)), Some(("flat".to_owned(), true)));

    let stays = |entry: &Entry, faster: &Sample, own: &Sample| {
        assert_eq!(entry.beaten_by(&flat, faster, own), None);
    };
    stays(&entry, &sample(160.0, 201.0, 8), &own);
    stays(&entry, &sample(160.0, 170.0, 7), &own);
    stays(&entry, &faster, &sample(200.0, 220.0, 7));
    stays(&Entry { choice: flat.clone(), ..entry.clone() }, &faster, &own);
    stays(&Entry { class: Some(TransferClass::Far), ..entry.clone() }, &faster, &own);
    stays(&Entry { class: None, ..entry.clone() }, &faster, &own);
    stays(&Entry { confidence: Confidence::Open, ..entry }, &faster, &own);
}
