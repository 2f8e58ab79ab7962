//! Freed teams: their calls return errors, and other teams are not affected.

use consort::{
    Error, Job, Rank, Result, Team,
    bindings::is_before_turn,
    error::CallError,
    ops::Sum,
    symmetric::Until,
    sync_modes::SyncModes,
    tune::{Candidate, ChosenBy, Collective},
};

use consort_conformance::turns::{LIMIT, alone};

use crate::jobs::{on, pes_of};

#[test]
fn freed_team_is_reported() {
    on(pes_of(4), |world| {
        // Thousands of teams, but few are alive at any time: memory is returned.
        for round in 0..2000 {
            let team = world.split(Some(world.rank().0 % 2), 0)?.expect("a colour");
            assert_eq!(team.all_reduce(1, Sum)?, 2, "round {round}");
            team.free()?;
        }
        let team = world.strided(Rank(0), 1, 4)?.expect("all are in it");
        let memory = team.symmetric::<u64>(4)?;
        let counter = team.completion_counter()?;
        let freed = Some(Error::Call(CallError::Freed));
        team.clone().free()?;
        assert_eq!(team.barrier().err(), freed);
        assert_eq!(team.with_sync(SyncModes::LOOSE).broadcast(1, Rank(0)).err(), freed);
        assert_eq!(team.all_reduce(1, Sum).err(), freed);
        assert_eq!(team.split(Some(1), 0).err(), freed);
        assert_eq!(team.subset(&[]).err(), freed);
        assert_eq!(team.symmetric::<u8>(1).err(), freed);
        assert_eq!(team.async_broadcasts(|_, _| ()).err(), freed);
        assert_eq!(team.clone().free().err(), freed);
        assert_eq!(memory.load(0).err(), freed);
        assert_eq!(memory.wait_until(0, Until::Equals(1)).err(), freed);
        assert_eq!(counter.get().err(), freed);
        assert_eq!(team.world_rank(Rank(0)).err(), freed);
        assert_eq!(team.rank_of_world(Rank(0)), None);
        assert_eq!(team.size(), 4);
        world.barrier()
    });
}

/// A new team may reuse a PE's state of a freed one.
#[test]
fn call_on_a_freed_team_affects_no_other() {
    on(pes_of(5).without_wisdom().online(0.5), |world| {
        let mut sums = [0; 1000];
        let is_first = world.rank() == Rank(0);
        let old = world.subset(&[Rank(0), Rank(1)])?;
        if let Some(old) = &old {
            old.clone().free()?;
        }
        if let Some(old) = old.as_ref().filter(|_| is_first) {
            let sum = old.slices(&[1_u64; 1000], &mut sums).all_reduce(Sum);
            assert_eq!(sum.err(), Some(Error::Call(CallError::Freed)));
        }
        let new = world.split(Some(0), 0)?.expect("a colour");
        for _ in 0..300 {
            new.slices(&[1_u64; 1000], &mut sums).all_reduce(Sum)?;
            assert_eq!(sums, [5; 1000]);
        }
        if let Some(old) = old.as_ref().filter(|_| is_first) {
            old.algorithms().force(Collective::AllReduce, Some(Candidate::new("ring")));
            assert_eq!(old.algorithms().served_by(Collective::AllReduce), None);
        }
        assert_eq!(new.algorithms().choice(Collective::AllReduce, 8).1, ChosenBy::Model);
        new.slices(&[1_u64; 1000], &mut sums).all_reduce(Sum)
    });
}

/// Leaves a state of PEs 0 and 1 in which nothing is as at first. The team is dropped if it is not
/// freed.
fn use_a_state(world: &Team, frees: bool) -> Result<()> {
    let Some(team) = world.subset(&[Rank(0), Rank(1)])? else { return Ok(()) };
    let loose = team.with_sync(SyncModes::LOOSE);
    drop(team.symmetric::<u8>(1)?);
    team.split(Some(0), 0)?.expect("a colour").free()?; // its state is not the next to be used
    team.barrier()?;
    for round in 0..500 {
        assert_eq!(team.all_reduce(round, Sum)?, 2 * round);
        assert_eq!(loose.broadcast(round, Rank(0))?, round);
    }
    team.algorithms().force(Collective::AllReduce, Some(Candidate::new("ring")));
    // No PE waits for all others in the last quarter of the window, which has a nonblocking call.
    let pending = loose.start(vec![1]).broadcast(Rank(0))?;
    for round in 0..500 {
        assert_eq!(loose.broadcast(round, Rank(1))?, round);
    }
    pending.wait()?;
    drop(loose.start(vec![1]).broadcast(Rank(1))?);
    if frees { team.free() } else { Ok(()) }
}

/// The members of a team agree on all calls, although the state of one has served another team, and
/// that of the other none.
#[test]
fn team_with_a_reused_state_agrees_on_all_calls() {
    for frees in [false, true] {
        let pool = pes_of(3).without_wisdom().online(0.5).pool().expect("a pool");
        alone(LIMIT, move || {
            pool.run(|pe| use_a_state(pe.world(), frees)).expect("all is well");
            let ended = pool.run(|pe| {
                let Some(team) = pe.world().subset(&[Rank(2), Rank(0)])? else { return Ok(()) };
                assert_eq!(team.algorithms().served_by(Collective::AllReduce), None);
                assert_eq!(team.algorithms().choice(Collective::AllReduce, 8).1, ChosenBy::Model);
                for _ in 0..100 {
                    team.barrier()?; // no credit is given
                }
                let loose = team.with_sync(SyncModes::LOOSE);
                let mut pending = Vec::new();
                for round in 0..500 {
                    assert_eq!(loose.broadcast(round, Rank(0))?, round);
                    if round % 100 == 1 {
                        pending.push(loose.start(vec![round]).broadcast(Rank(1))?);
                    }
                }
                for (request, round) in pending.into_iter().zip((1..).step_by(100)) {
                    assert_eq!(request.wait()?, [round]);
                }
                for round in 0..500 {
                    assert_eq!(team.all_reduce(round, Sum)?, 2 * round);
                    team.barrier()?;
                }
                let (memory, part) = (team.symmetric::<u64>(1)?, team.split(Some(0), 0)?);
                memory.put(team.right(), 0, &[7])?;
                part.expect("a colour").barrier()?;
                assert_eq!(memory.load(0)?, 7);
                team.free()
            });
            assert_eq!(ended.map(drop), Ok(()), "frees: {frees}");
        });
    }
}

/// The window of a team of more than 64 PEs is shorter. A state that is used again has the window of
/// its new team.
#[test]
fn used_state_has_the_window_of_its_next_team() {
    let pes = Job::threads(65).without_wisdom().heap_bytes(1 << 16);
    on(pes, |world| {
        let turns = |team: &Team| {
            let mut turns = 0;
            for _ in 0..64 {
                turns += usize::from(is_before_turn(team));
                team.barrier()?;
            }
            Ok::<_, Error>(turns)
        };
        let pair = world.split(Some(world.rank().0 / 2), 0)?.expect("a colour");
        assert_eq!(turns(&pair)?, 4);
        pair.free()?;
        let all = world.split(Some(0), 0)?.expect("a colour");
        assert_eq!(turns(&all)?, 16);
        all.free()
    });
}
