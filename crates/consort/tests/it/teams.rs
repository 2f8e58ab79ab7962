//! Teams of some of the PEs: who is in them, what they compute, and what goes wrong in them.

use std::{
    thread,
    time::{Duration, Instant},
};

use consort::{
    Candidate, ChosenBy, Collective, Error, Failure, Max, Pes, Rank, Result, Sum, SyncModes, Team,
    TeamError, Until, Waiting,
};

use crate::{
    data::{Call, Random, affine, combined, contribution},
    turns::{LIMIT, alone, note},
    typed::slices,
};

/// How long others may take to hear of a failure.
const SOON: Duration = Duration::from_secs(1);
/// Steps of a random program.
const STEPS: usize = 400;

fn pes_of(pes: u32) -> Pes {
    Pes::threads(pes).heap_bytes(1 << 20)
}

/// The members' ranks in the world, as the team tells them, checked in both directions.
fn members(team: Team<'_>) -> Result<Vec<u32>> {
    let ranks: Vec<Rank> =
        (0..team.size()).map(|rank| team.world_rank(Rank(rank))).collect::<Result<_>>()?;
    for (here, &there) in (0..).map(Rank).zip(&ranks) {
        assert_eq!(team.rank_of_world(there), Some(here));
    }
    assert!(team.world_rank(Rank(team.size())).is_err());
    assert_eq!(team.rank_of_world(Rank(1000)), None);
    Ok(ranks.into_iter().map(|rank| rank.0).collect())
}

/// What a team computes must be that of its members in their order, in every collective.
fn collectives(team: Team<'_>, seed: u64) -> Result<()> {
    let (pes, me) = (team.size(), team.rank());
    for len in [0, 1, 9, 2000] {
        for collective in Collective::EVERY {
            let roots = if collective.is_rooted() { pes } else { 1 };
            for root in (0..roots).map(Rank) {
                let call = Call { collective, pes, root, len, seed };
                let mut target = vec![0; call.target_len(me)];
                let source = call.source::<u64>(me);
                slices(team, collective, &source, &mut target, affine, root)?;
                let expected = call.result(me, &affine);
                assert!(
                    expected.is_none_or(|expected| target == expected),
                    "{collective} of {len}, root {root}, on PE {me} of {pes}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_split_goes_by_colour_key_and_rank() {
    let all = alone(LIMIT, || {
        pes_of(7).run(|pe| {
            let world = pe.world();
            let me = world.rank().0;
            let color = (me != 6).then_some(me % 2 * 1000);
            let key = if me < 4 { 5 - i64::from(me) } else { i64::MIN };
            let team = world.with(SyncModes::LOOSE).split(color, key)?;
            let team = team.map(|team| {
                assert_eq!(team.sync(), SyncModes::LOOSE);
                assert_eq!(members(team)?[team.rank().index()], me);
                members(team)
            });
            team.transpose()
        })
    });
    let all: Vec<_> = all.unwrap().into_iter().map(|(_, members)| members).collect();
    let (even, odd) = (Some(vec![4, 2, 0]), Some(vec![5, 3, 1]));
    let expected = [&even, &odd, &even, &odd, &even, &odd, &None];
    assert!(all.iter().eq(expected), "{all:?}");
}

#[test]
fn lists_and_strides() {
    alone(LIMIT, || {
        pes_of(6).run(|pe| {
            let world = pe.world();
            let ranks = |list: &[u32]| list.iter().copied().map(Rank).collect::<Vec<_>>();
            for (team, expected) in [
                (world.of(&ranks(&[5, 0, 3]))?, vec![5, 0, 3]),
                (world.of(&ranks(&[2]))?, vec![2]),
                (world.of(&[])?, vec![]),
                (world.strided(Rank(1), 2, 3)?, vec![1, 3, 5]),
                (world.strided(Rank(5), -1, 6)?, vec![5, 4, 3, 2, 1, 0]),
                (world.strided(Rank(4), 0, 1)?, vec![4]),
                (world.strided(Rank(9), 3, 0)?, vec![]),
            ] {
                assert_eq!(team.is_some(), expected.contains(&world.rank().0));
                if let Some(team) = team {
                    assert_eq!(members(team)?, expected);
                    collectives(team, 1)?;
                }
            }
            Ok(())
        })
    })
    .unwrap();
}

#[test]
fn rows_and_columns_of_many_shapes() {
    for (pes, rows) in [(1, 1), (5, 1), (5, 5), (6, 2), (16, 4)] {
        alone(LIMIT, move || {
            note(format!("{rows} rows of {pes} PEs"));
            pes_of(pes).run(|pe| {
                let grid = pe.world().cartesian(rows)?;
                let (row, column) = (grid.row, grid.column);
                assert_eq!((row.size(), column.size()), (pes / rows, rows));
                assert_eq!(members(row)?[row.rank().index()], pe.world().rank().0);
                assert_eq!(members(column)?[column.rank().index()], pe.world().rank().0);
                // Rows are apart in time, and columns tie them together again.
                for seed in 0..2 {
                    collectives(row, seed)?;
                    collectives(column, seed)?;
                }
                collectives(pe.world(), 3)
            })
        })
        .unwrap();
    }
}

/// A team of a team, in another order.
#[test]
fn teams_of_teams() {
    alone(LIMIT, || {
        pes_of(8).run(|pe| {
            let me = pe.world().rank().0;
            let half = pe.world().split(Some(me / 4), -i64::from(me))?.expect("a colour");
            let pair = half.split(Some(half.rank().0 / 2), 0)?.expect("a colour");
            let first = me / 2 * 2;
            assert_eq!(members(pair)?, [first + 1, first]);
            collectives(pair, 7)?;
            half.free()?;
            collectives(pair, 8)
        })
    })
    .unwrap();
}

/// Rows and columns in turn, at random, calls of both under way at once.
fn interleaved(seed: u64) {
    let mut random = Random(seed);
    let (pes, rows) = *random.pick(&[(4, 2), (6, 2), (6, 3), (9, 3), (16, 4)]);
    let waiting = *random.pick(&[Waiting::SpinYield, Waiting::SpinYieldPark]);
    let outcome = alone(LIMIT, move || {
        pes_of(pes).waiting(waiting).run(|pe| {
            let world = pe.world().with(SyncModes::LOOSE);
            let grid = world.cartesian(rows)?;
            let (mut program, mut own) = (Random(seed), Random(seed ^ u64::from(world.rank().0)));
            for step in 0..STEPS {
                own.dawdle();
                if world.rank() == Rank(0) {
                    note(format!("CONSORT_SEED={seed}, step {step}"));
                }
                let team = *program.pick(&[grid.row, grid.column, grid.row, grid.column, world]);
                let (seed, root) = (program.next(), program.next() % u64::from(pes));
                let root = Rank(u32::try_from(root).expect("a rank") % team.size());
                let of = |rank: Rank| {
                    let there = team.world_rank(rank).expect("a member");
                    contribution::<u64>(seed, there, 1)
                };
                let (me, sum) = (of(team.rank())[0], combined(team.size(), 1, &affine, of)[0]);
                match program.below(8) {
                    0..3 => assert_eq!(team.broadcast(me, root)?, of(root)[0]),
                    3..6 => {
                        let expected = (team.rank() == root).then_some(sum);
                        assert_eq!(team.reduce(me, affine, root)?, expected);
                    }
                    6 => assert_eq!(team.all_reduce(me, affine)?, sum),
                    _ => team.barrier()?,
                }
            }
            Ok(())
        })
    });
    outcome.unwrap_or_else(|error| panic!("CONSORT_SEED={seed} repeats this: {error}"));
}

#[test]
fn overlapping_teams_interleave() {
    match std::env::var("CONSORT_SEED") {
        Ok(seed) => interleaved(seed.parse().expect("CONSORT_SEED is a number")),
        Err(_) => (0..12).for_each(interleaved),
    }
}

#[test]
fn what_cannot_be_made_is_told() {
    alone(LIMIT, || {
        pes_of(4).run(|pe| {
            let world = pe.world();
            let told = |result: Result<Option<Team<'_>>>| match result {
                Err(Error::Team(error)) => error,
                other => panic!("{other:?}"),
            };
            let outside = TeamError::Outside { rank: 4, pes: 4 };
            assert_eq!(told(world.of(&[Rank(0), Rank(4)])), outside);
            assert!(outside.to_string().contains("ranks 0 to 3"));
            assert_eq!(told(world.strided(Rank(2), 2, 2)), outside);
            assert_eq!(
                told(world.strided(Rank(1), -1, 3)),
                TeamError::Outside { rank: -1, pes: 4 }
            );
            assert_eq!(
                told(world.of(&[Rank(2), Rank(1), Rank(2)])),
                TeamError::Twice { rank: Rank(2) }
            );
            assert_eq!(told(world.strided(Rank(3), 0, 2)), TeamError::Twice { rank: Rank(3) });
            for rows in [0, 3, 8] {
                let error = world.cartesian(rows).err();
                assert_eq!(error, Some(TeamError::Rows { rows, pes: 4 }.into()));
            }
            assert_eq!(world.free().err(), Some(TeamError::World.into()));
            world.barrier()
        })
    })
    .unwrap();
}

#[test]
fn a_freed_team_says_so() {
    alone(LIMIT, || {
        pes_of(4).run(|pe| {
            let world = pe.world();
            // Thousands, of which few are alive at any time: memory comes back.
            for round in 0..2000 {
                let team = world.split(Some(world.rank().0 % 2), 0)?.expect("a colour");
                assert_eq!(team.all_reduce(1, Sum)?, 2, "round {round}");
                team.free()?;
            }
            let team = world.strided(Rank(0), 1, 4)?.expect("all are in it");
            let memory = team.symmetric::<u64>(4)?;
            let counter = team.counter()?;
            let freed = Some(Error::Freed);
            team.free()?;
            assert_eq!(team.barrier().err(), freed);
            assert_eq!(team.with(SyncModes::LOOSE).broadcast(1, Rank(0)).err(), freed);
            assert_eq!(team.all_reduce(1, Sum).err(), freed);
            assert_eq!(team.split(Some(1), 0).err(), freed);
            assert_eq!(team.of(&[]).err(), freed);
            assert_eq!(team.symmetric::<u8>(1).err(), freed);
            assert_eq!(team.async_broadcasts(|_, _| ()).err(), freed);
            assert_eq!(team.free().err(), freed);
            assert_eq!(memory.load(0).err(), freed);
            assert_eq!(memory.wait_until(0, Until::Equals(1)).err(), freed);
            assert_eq!(counter.get().err(), freed);
            assert_eq!(team.world_rank(Rank(0)).err(), freed);
            assert_eq!(team.rank_of_world(Rank(0)), None);
            assert_eq!(team.size(), 4);
            world.barrier()
        })
    })
    .unwrap();
}

/// A new team may have what a PE kept for a freed one.
#[test]
fn what_is_asked_of_a_freed_team_concerns_no_other() {
    alone(LIMIT, || {
        pes_of(5).without_wisdom().online(0.5).run(|pe| {
            let (world, mut sums) = (pe.world(), [0; 1000]);
            let is_first = world.rank() == Rank(0);
            let old = world.of(&[Rank(0), Rank(1)])?;
            if let Some(old) = old {
                old.free()?;
            }
            if let Some(old) = old.filter(|_| is_first) {
                let sum = old.all_reduce_slice(&[1_u64; 1000], &mut sums, Sum);
                assert_eq!(sum.err(), Some(Error::Freed));
            }
            let new = world.split(Some(0), 0)?.expect("a colour");
            for _ in 0..300 {
                new.all_reduce_slice(&[1_u64; 1000], &mut sums, Sum)?;
                assert_eq!(sums, [5; 1000]);
            }
            if let Some(old) = old.filter(|_| is_first) {
                old.force(Collective::AllReduce, Some(Candidate::new("ring")));
                assert_eq!(old.served_by(Collective::AllReduce), None);
            }
            assert_eq!(new.choice(Collective::AllReduce, 8).1, ChosenBy::Model);
            new.all_reduce_slice(&[1_u64; 1000], &mut sums, Sum)
        })
    })
    .unwrap();
}

/// The PEs of one row get a team, those of the other hear that there is no memory.
#[test]
fn a_grid_that_only_some_get_memory_for() {
    alone(LIMIT, || {
        pes_of(4).run(|pe| {
            let world = pe.world();
            let pair = world.of(&[Rank(0), Rank(1)])?;
            let mut singles = Vec::new();
            loop {
                let single = world.of(&[Rank(0)]);
                if world.all_reduce(u32::from(single.is_err()), Sum)? > 0 {
                    break;
                }
                singles.push(single?);
            }
            if let Some(pair) = pair {
                pair.free()?; // room for one
            }
            world.barrier()?;
            if let Err(error) = world.cartesian(2) {
                assert_eq!(error, TeamError::Memory { pes: 2 }.into());
            }
            for single in singles.drain(..100).flatten() {
                single.free()?;
            }
            world.barrier()?;
            let all = world.strided(Rank(0), 1, 4)?.expect("all are in it");
            assert_eq!(all.all_reduce(1, Sum)?, 4, "all have counted the teams alike");
            Ok(())
        })
    })
    .unwrap();
}

/// Symmetric memory and counters by the ranks of their team; collectives of another one on them.
#[test]
fn memory_of_a_team() {
    alone(LIMIT, || {
        pes_of(6).run(|pe| {
            let grid = pe.world().cartesian(2)?;
            let (row, column) = (grid.row, grid.column);
            let (mine, sum) = (row.symmetric::<u64>(3)?, row.symmetric::<u64>(3)?);
            // While others allocate in theirs.
            let other = column.symmetric::<u64>(1 + row.rank().index() * 50)?;
            let arrived = row.counter()?;
            let me = u64::from(pe.world().rank().0);
            mine.put_counted(row.right(), row.rank().index(), &[me + 1], &arrived)?;
            mine.put_counted(row.rank(), row.rank().index(), &[me + 1], &arrived)?;
            arrived.wait(2)?;
            let left = row.left();
            let expected = u64::from(row.world_rank(left)?.0) + 1;
            assert_eq!(
                (mine.load(left.index())?, mine.load(row.rank().index())?),
                (expected, me + 1)
            );
            assert!(matches!(
                mine.get(Rank(3), 0, &mut [0]),
                Err(Error::RankOutOfRange { pes: 3, .. })
            ));
            row.barrier()?;
            mine.put(row.rank(), 0, &[me, 2 * me, 1])?;
            row.all_reduce_symmetric(&mine, &sum, Sum)?;
            let of_row: u64 = members(row)?.into_iter().map(u64::from).sum();
            assert_eq!([sum.load(0)?, sum.load(1)?, sum.load(2)?], [of_row, 2 * of_row, 3]);
            // A pair of the row, on the row's memory.
            let pair = row.strided(Rank(2), -2, 2)?;
            if let Some(pair) = pair {
                pair.with(SyncModes::STRICT).all_reduce_symmetric(&mine, &sum, Max)?;
                assert_eq!(sum.load(0)?, u64::from(row.world_rank(Rank(2))?.0));
                mine.signal(Rank(1), 2, consort::Signal::Add(10))?;
            } else {
                mine.wait_until(2, Until::Equals(21))?;
            }
            other.store(0, 5)?;
            drop(other);
            pe.world().barrier()
        })
    })
    .unwrap();
}

#[test]
fn async_broadcasts_of_a_team() {
    let received = alone(LIMIT, || {
        pes_of(5).run(|pe| {
            let mut received = Vec::new();
            let team = pe.world().split(Some(pe.world().rank().0 % 2), 0)?.expect("a colour");
            let mut broadcasts =
                team.async_broadcasts(|source, data| received.push((source, data[0])))?;
            if team.rank() == Rank(1) {
                broadcasts.broadcast(&[u8::try_from(pe.world().rank().0).expect("small")])?;
            }
            pe.world().barrier()?;
            broadcasts.close()?;
            Ok(received)
        })
    });
    let received: Vec<_> = received.unwrap().into_iter().map(|(_, received)| received).collect();
    let (from_2, from_3) = (vec![(Rank(1), 2)], vec![(Rank(1), 3)]);
    assert_eq!(received, [from_2.clone(), from_3, vec![], vec![], from_2]);
}

/// What serves a call goes by the team's size.
#[test]
fn choices_are_those_of_the_teams_size() {
    type Chosen = [[consort::Candidate; 4]; Collective::EVERY.len()];
    fn choices(team: Team<'_>) -> Chosen {
        let of = |collective| [0, 8, 4096, 1 << 20].map(|bytes| team.choice(collective, bytes).0);
        Collective::EVERY.map(of)
    }
    alone(LIMIT, || {
        let alone = Pes::threads(2).without_wisdom().run(|pe| Ok(choices(pe.world())))?;
        Pes::threads(16).without_wisdom().run(|pe| {
            let pair = pe.world().split(Some(pe.world().rank().0 / 2), 0)?.expect("a colour");
            assert_eq!(choices(pair), alone[0].1);
            assert_ne!(choices(pe.world()), alone[0].1);
            Ok(())
        })
    })
    .unwrap();
}

/// Runs a program that must fail, and says how; soon.
fn fails(
    pes: u32,
    program: impl Fn(Team<'_>) -> Result<()> + Send + std::marker::Sync + 'static,
) -> Error {
    alone(2 * SOON, move || {
        let since = Instant::now();
        let outcome = pes_of(pes).run(|pe| program(pe.world()));
        assert!(since.elapsed() < SOON, "heard after {:?}", since.elapsed());
        outcome.expect_err("a job that must fail")
    })
}

#[test]
fn mismatches_in_a_team_are_told_with_ranks_of_the_world() {
    let error = fails(6, |world| {
        let team = world.split(Some(world.rank().0 % 2), 0)?.expect("a colour");
        if world.rank() == Rank(2) { team.all_reduce(1, Sum).map(drop) } else { team.barrier() }
    });
    let Error::Mismatched(Failure::Mismatched { one, other, team, .. }) = &error else {
        panic!("{error}");
    };
    assert_eq!((&team.first[..], team.size), (&[Rank(0), Rank(2), Rank(4)][..], 3));
    let [odd, even] = if one.0 == Rank(2) { [one, other] } else { [other, one] };
    assert!(odd.0 == Rank(2) && odd.1.contains("all_reduce"), "{error}");
    assert!([Rank(0), Rank(4)].contains(&even.0) && even.1.contains("barrier"), "{error}");
    assert!(error.to_string().contains("in the team of PEs 0, 2, 4:"), "{error}");
}

/// The ways to make teams are calls like others.
#[test]
fn making_teams_must_match() {
    let told = |error: &Error, names: [&str; 2]| {
        let text = error.to_string();
        assert!(names.iter().all(|name| text.contains(name)), "{names:?} in {text}");
    };
    let odd = |world: Team<'_>| world.rank() == Rank(1);
    let error =
        fails(
            3,
            move |world| {
                if odd(world) { world.split(Some(0), 0).map(drop) } else { world.barrier() }
            },
        );
    told(&error, ["PE 1 called split()", "called barrier()"]);
    let error = fails(3, move |world| world.strided(Rank(odd(world).into()), 1, 2).map(drop));
    told(&error, ["PE 1 called strided(1, 1, 2)", "called strided(0, 1, 2)"]);
    let error = fails(3, move |world| {
        if odd(world) { world.of(&[Rank(2)]).map(drop) } else { world.cartesian(3).map(drop) }
    });
    told(&error, ["PE 1 called of(2)", "called cartesian(3)"]);
    let error = fails(3, move |world| {
        let team = world.strided(Rank(0), 1, 3)?.expect("all are in it");
        if odd(world) { team.barrier() } else { team.free() }
    });
    told(&error, ["PE 1 called barrier()", "called free()"]);
}

#[test]
fn who_leaves_a_team_waiting_is_told() {
    let error = fails(5, |world| {
        let team = world.split(Some(world.rank().0 / 3), 0)?.expect("a colour");
        if world.rank() == Rank(3) { Ok(()) } else { team.barrier() }
    });
    let Error::Mismatched(Failure::Finished { rank, waiting, team, .. }) = &error else {
        panic!("{error}");
    };
    assert_eq!((*rank, *waiting, &team.first[..]), (Rank(3), Rank(4), &[Rank(3), Rank(4)][..]));
    assert!(error.to_string().contains("in the team of PEs 3, 4"), "{error}");
}

/// All hear of a PE that dies in a call of some: in that call, in one of another team, in none.
#[test]
fn a_death_in_a_team_fails_all() {
    let error = fails(6, |world| {
        let team = world.split(Some(world.rank().0 / 2), 0)?.expect("a colour");
        match world.rank().0 {
            4 => {
                thread::sleep(Duration::from_millis(20));
                panic!("as planned")
            }
            0 => world.barrier(),
            1 => team.barrier(),
            _ => loop {
                team.all_reduce(1, Sum)?;
            },
        }
    });
    assert!(matches!(error, Error::PeFailed { rank: Rank(4), .. }), "{error}");
}

#[test]
fn two_teams_that_wait_for_each_other() {
    let error = fails(4, |world| {
        let low = world.strided(Rank(0), 1, 2)?;
        let all = world.strided(Rank(0), 1, 4)?.expect("all are in it");
        if world.rank() == Rank(0) {
            low.expect("0 is in it").barrier()?;
        }
        all.all_reduce(1, Sum).map(drop)
    });
    let Error::Mismatched(Failure::Deadlock { one, other }) = &error else { panic!("{error}") };
    let [zero, some] = if one.0 == Rank(0) { [one, other] } else { [other, one] };
    assert!(zero.0 == Rank(0) && zero.1.contains("in the team of PEs 0, 1"), "{error}");
    assert!(zero.1.contains("barrier()") && some.1.contains("all_reduce"), "{error}");
    assert!(some.1.contains("in the team of PEs 0, 1, 2, 3"), "{error}");
}

/// Each PE is in a pair with the next one, and all call the pair with the left one first.
#[test]
fn a_ring_of_teams() {
    for waiting in Waiting::EVERY {
        let error = alone(2 * SOON, move || {
            pes_of(5).waiting(waiting).run(|pe| {
                let world = pe.world();
                let mut pairs = Vec::new();
                for first in (0..5).map(Rank) {
                    pairs.push(world.of(&[first, first.plus(1, 5)])?);
                }
                let pair = |first: Rank| pairs[first.index()].expect("in both");
                pair(world.left()).barrier()?;
                pair(world.rank()).barrier()
            })
        });
        let error = error.expect_err("a deadlock");
        assert!(matches!(error, Error::Mismatched(Failure::Deadlock { .. })), "{error}");
    }
}

/// PEs that wait for one that computes are no deadlock, however long it takes.
#[test]
fn who_waits_long_is_not_stuck() {
    alone(LIMIT, || {
        pes_of(4).run(|pe| {
            let world = pe.world().with(SyncModes::LOOSE);
            let low = world.strided(Rank(0), 1, 3)?;
            let pair = world.of(&[Rank(0), Rank(2)])?;
            // 2 waits for the root, 1, in the first; 0 for 2 in the second, and has not begun the
            // first.
            if world.rank() == Rank(1) {
                thread::sleep(Duration::from_millis(400));
            }
            if world.rank() == Rank(0) {
                pair.expect("0 is in it").barrier()?;
            }
            if let Some(low) = low {
                low.broadcast(1, Rank(1))?;
            }
            if world.rank() == Rank(2) {
                pair.expect("2 is in it").barrier()?;
            }
            world.barrier()
        })
    })
    .unwrap();
}
