//! Choices that are refined while the program runs.

use consort::{Algorithms, Candidate, Collective, Pes, Rank, Result, Sum, SyncModes, Team};
use consort_conformance::{
    data::affine,
    turns::{LIMIT, alone},
};
use consort_fabric::{OperatorClass, Query};
use consort_tuner::{Confidence, Entry, Rigour, Wisdom};

use crate::{data::Call, typed};

/// Wisdom that all-reduces of a word are best served by exposed buffers.
fn bad_wisdom(pes: u32) -> Wisdom {
    let mut wisdom = Wisdom::new(Algorithms::here().identity().clone());
    wisdom.insert(Entry {
        query: Query {
            collective: Collective::AllReduce,
            sync: SyncModes::MINE,
            pes,
            bytes: 8,
            operator: OperatorClass::Commutative,
            symmetric: false,
        },
        choice: bad(),
        median_ns: 10.0,
        ci95_ns: Some((9.0, 11.0)),
        runner_up: None,
        class: None,
        confidence: Confidence::Alone,
        rigour: Rigour::Measure,
        busy: None,
    });
    wisdom
}

fn bad() -> Candidate {
    Candidate::new("direct").with("block_bytes", 16384)
}

/// What serves all-reduces of a word at first and after many calls.
fn first_and_last(team: Team<'_>) -> Result<(Option<Candidate>, Option<Candidate>)> {
    let pes = u64::from(team.size());
    let mut first = None;
    for call in 0..30_000 {
        let sum = team.all_reduce(call + u64::from(team.rank().0), Sum)?;
        assert_eq!(sum, pes * call + pes * (pes - 1) / 2);
        if call == 0 {
            first = team.served_by(Collective::AllReduce);
        }
    }
    Ok((first, team.served_by(Collective::AllReduce)))
}

#[test]
fn a_bad_choice_is_left_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wisdom.toml");
    bad_wisdom(2).save(&path).expect("it can be saved");
    let all = alone(LIMIT, move || {
        Pes::threads(2).wisdom(path).online(0.1).run(|pe| first_and_last(pe.world()))
    });
    let all = all.expect("all is well");
    assert_eq!(all[0].1, all[1].1, "all PEs decide alike");
    let (first, last) = &all[0].1;
    assert!(first.is_none() || *first == Some(bad()), "{first:?}");
    assert!(*last != Some(bad()), "ten times slower than others, and still there");
}

#[test]
fn what_is_forced_is_not_refined() {
    let all = alone(LIMIT, move || {
        let pes = Pes::threads(2).force(Collective::AllReduce, bad());
        pes.online(0.5).run(|pe| first_and_last(pe.world()))
    });
    assert!(all.expect("all is well").iter().all(|(_, (_, last))| *last == Some(bad())));
}

/// Whatever is tried, results are right: all collectives in turn, of several sizes and modes.
#[test]
fn results_are_right_all_the_while() {
    let outcome = alone(LIMIT, move || {
        Pes::threads(3).without_wisdom().online(1.0).run(|pe| {
            let (world, me) = (pe.world(), pe.world().rank());
            let moving = || Collective::EVERY.into_iter().filter(|&one| one != Collective::Barrier);
            let mut served = std::collections::HashSet::new();
            for round in 0..400_u64 {
                for collective in moving() {
                    for (len, sync) in [(1, SyncModes::MINE), (300, SyncModes::STRICT)] {
                        let call = Call { collective, pes: 3, root: Rank(1), len, seed: round };
                        let mut target = vec![7; call.target_len(me)];
                        let source = call.source::<u64>(me);
                        let team = world.with(sync);
                        typed::slices(team, collective, &source, &mut target, affine, Rank(1))?;
                        let expected = call.result(me, &affine);
                        assert!(expected.is_none_or(|expected| expected == target));
                    }
                    served.insert((collective, world.served_by(collective)));
                }
            }
            Ok(served.len())
        })
    });
    let served = outcome.expect("all is well");
    assert!(served[0].1 > 2 * Collective::EVERY.len(), "{} were tried", served[0].1);
}
