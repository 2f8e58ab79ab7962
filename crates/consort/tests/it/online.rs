//! Choices that are refined while the program runs.

use consort::{
    Error, Job, JobBuilder, Rank, Result, Team,
    ops::Sum,
    sync_modes::SyncModes,
    tune::{Algorithms, Candidate, Collective},
};
use consort_conformance::{
    data::affine,
    turns::{LIMIT, alone},
};
use consort_fabric::{OperatorClass, Query};
use consort_tuner::{Confidence, Entry, Rigour, Wisdom};

use crate::{data::Call, typed};

/// Returns wisdom that serves all-reduces of a word by exposed buffers.
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
        contenders: Vec::new(),
        class: None,
        confidence: Confidence::Alone,
        rigour: Rigour::Measure,
        undisturbed: 1.0,
        busy: None,
    });
    wisdom
}

fn bad() -> Candidate {
    Candidate::new("direct").with("block_bytes", 16384)
}

/// Returns the candidates that serve all-reduces of a word at first and after many calls.
fn first_and_last(team: &Team) -> Result<(Option<Candidate>, Option<Candidate>)> {
    let pes = team.size() as u64;
    let mut first = None;
    for call in 0..30_000 {
        let sum = team.all_reduce(call + u64::from(team.rank().0), Sum)?;
        assert_eq!(sum, pes * call + pes * (pes - 1) / 2);
        if call == 0 {
            first = team.algorithms().served_by(Collective::AllReduce);
        }
    }
    Ok((first, team.algorithms().served_by(Collective::AllReduce)))
}

#[test]
fn bad_choice_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wisdom.toml");
    bad_wisdom(2).save(&path).expect("it can be saved");
    let all = alone(LIMIT, move || {
        Job::threads(2).wisdom(path).online(0.1).run(|pe| first_and_last(pe.world()))
    });
    let all = all.expect("all is well");
    assert_eq!(all[0], all[1], "all PEs decide alike");
    let (first, last) = &all[0];
    assert!(first.is_none() || *first == Some(bad()), "{first:?}");
    assert!(*last != Some(bad()), "ten times slower than others, and still there");
}

#[test]
fn forced_choice_is_not_refined() {
    let all = alone(LIMIT, move || {
        let pes = Job::threads(2).force(Collective::AllReduce, bad());
        pes.online(0.5).run(|pe| first_and_last(pe.world()))
    });
    assert!(all.expect("all is well").iter().all(|(_, last)| *last == Some(bad())));
}

/// Results are correct with any candidate: all collectives in turn, of several sizes and modes.
#[test]
fn results_are_right_while_refining() {
    let outcome = alone(LIMIT, move || {
        Job::threads(3).without_wisdom().online(1.0).run(|pe| {
            let (world, me) = (pe.world(), pe.world().rank());
            let moving = || Collective::EVERY.into_iter().filter(|&one| one != Collective::Barrier);
            let mut served = std::collections::HashSet::new();
            for round in 0..400_u64 {
                for collective in moving() {
                    for (len, sync) in [(1, SyncModes::MINE), (300, SyncModes::STRICT)] {
                        let call = Call { collective, pes: 3, root: Rank(1), len, seed: round };
                        let mut target = vec![7; call.target_len(me)];
                        let source = call.source::<u64>(me);
                        let team = world.with_sync(sync);
                        typed::slices(&team, collective, &source, &mut target, affine, Rank(1))?;
                        let expected = call.result(me, &affine);
                        assert!(expected.is_none_or(|expected| expected == target));
                    }
                    served.insert((collective, world.algorithms().served_by(collective)));
                }
            }
            Ok(served.len())
        })
    });
    let served = outcome.expect("all is well");
    assert!(served[0] > 2 * Collective::EVERY.len(), "{} were tried", served[0]);
}

/// The results of one program serve the next one, and are not found twice.
#[test]
fn refined_choice_is_kept_for_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wisdom.toml");
    bad_wisdom(2).save(&path).expect("it can be saved");
    let found = {
        let path = path.clone();
        alone(LIMIT, move || {
            Job::threads(2).wisdom(path).online(0.1).run(|pe| {
                let world = pe.world();
                // Try for long enough on a shared machine.
                for _ in 0..20 {
                    first_and_last(world)?;
                    let kept = world.algorithms().save_refined()?;
                    if kept > 0 {
                        assert_eq!(world.algorithms().save_refined()?, 0, "it is kept already");
                        return Ok(kept);
                    }
                }
                Ok(0)
            })
        })
    };
    let found = found.expect("all is well");
    assert_eq!(found, [1, 1]);
    let identity = Algorithms::here().identity();
    let wisdom = Wisdom::load(&path, identity).expect("it is wisdom");
    let entry = wisdom.entries().next().expect("one entry");
    assert!(entry.choice != bad() && entry.alternatives().count() > 0, "{entry:?}");
    let choice = entry.choice.clone();
    let later = Job::threads(2).wisdom(&path).run(|pe| {
        pe.world().all_reduce(1, Sum)?;
        Ok(pe.world().algorithms().served_by(Collective::AllReduce))
    });
    assert_eq!(later.expect("all is well")[0], Some(choice));
}

#[test]
fn nothing_is_kept_without_refinement_or_wisdom() {
    let refused = |pes: JobBuilder| {
        let run = pes.run(|pe| {
            let Err(Error::Wisdom(why)) = pe.world().algorithms().save_refined() else {
                panic!("not refused")
            };
            Ok(why)
        });
        run.expect("all is well")
    };
    let never = refused(Job::threads(2));
    assert!(
        never.iter().all(|why| why.contains("launch it with `JobBuilder::online`")),
        "{never:?}"
    );
    let nowhere = refused(Job::threads(2).without_wisdom().online(0.1));
    assert_eq!(nowhere[0], "the job was launched without wisdom");
    assert_eq!(
        nowhere[1],
        "PE 0 could not save the refined choices: its own error names the reason"
    );
}
