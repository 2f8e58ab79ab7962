//! Freed teams: their calls return errors, and other teams see nothing of them.

use consort::{
    Error, Rank,
    error::CallError,
    ops::Sum,
    symmetric::Until,
    sync_modes::SyncModes,
    tune::{Candidate, ChosenBy, Collective},
};

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
