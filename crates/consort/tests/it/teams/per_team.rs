//! The resources of each team: memory, counters, asynchronous broadcasts, choices.

use consort::{
    Error, Job, Rank, Team,
    error::CallError,
    ops::{Max, Sum},
    symmetric::Until,
    sync_modes::SyncModes,
    tune::Collective,
};
use consort_conformance::turns::{LIMIT, alone};

use super::members;
use crate::jobs::{on, pes_of};

/// Symmetric memory and counters use the ranks of their team; collectives of another team use them.
#[test]
fn memory_of_a_team_uses_its_ranks() {
    on(pes_of(6), |world| {
        let grid = world.cartesian(2)?;
        let (row, column) = (grid.row, grid.column);
        let (mine, sum) = (row.symmetric::<u64>(3)?, row.symmetric::<u64>(3)?);
        // At the same time, others allocate in their teams.
        let other = column.symmetric::<u64>(1 + row.rank().index() * 50)?;
        let arrived = row.completion_counter()?;
        let me = u64::from(world.rank().0);
        mine.put_counted(row.right(), row.rank().index(), &[me + 1], &arrived)?;
        mine.put_counted(row.rank(), row.rank().index(), &[me + 1], &arrived)?;
        arrived.wait(2)?;
        let left = row.left();
        let expected = u64::from(row.world_rank(left)?.0) + 1;
        assert_eq!((mine.load(left.index())?, mine.load(row.rank().index())?), (expected, me + 1));
        assert!(matches!(
            mine.get(Rank(3), 0, &mut [0]),
            Err(Error::Call(CallError::RankOutOfRange { pes: 3, .. }))
        ));
        row.barrier()?;
        mine.put(row.rank(), 0, &[me, 2 * me, 1])?;
        row.in_symmetric(&mine, &sum).all_reduce(Sum)?;
        let of_row: u64 = members(&row)?.into_iter().map(u64::from).sum();
        assert_eq!([sum.load(0)?, sum.load(1)?, sum.load(2)?], [of_row, 2 * of_row, 3]);
        // A pair of the row, on the row's memory.
        let pair = row.strided(Rank(2), -2, 2)?;
        if let Some(pair) = pair {
            pair.with_sync(SyncModes::STRICT).in_symmetric(&mine, &sum).all_reduce(Max)?;
            assert_eq!(sum.load(0)?, u64::from(row.world_rank(Rank(2))?.0));
            mine.signal(Rank(1), 2, consort::symmetric::Signal::Add(10))?;
        } else {
            mine.wait_until(2, Until::Equals(21))?;
        }
        other.store(0, 5)?;
        drop(other);
        world.barrier()
    });
}

#[test]
fn async_broadcasts_stay_in_their_team() {
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
    let (from_2, from_3) = (vec![(Rank(1), 2)], vec![(Rank(1), 3)]);
    assert_eq!(received.unwrap(), [from_2.clone(), from_3, vec![], vec![], from_2]);
}

/// The choice of an algorithm depends on the team's size.
#[test]
fn choices_depend_on_the_team_size() {
    type Chosen = [[consort::tune::Candidate; 4]; Collective::EVERY.len()];
    fn choices(team: &Team) -> Chosen {
        let of = |collective| {
            [0, 8, 4096, 1 << 20].map(|bytes| team.algorithms().choice(collective, bytes).0)
        };
        Collective::EVERY.map(of)
    }
    alone(LIMIT, || {
        let alone = Job::threads(2).without_wisdom().run(|pe| Ok(choices(pe.world())))?;
        Job::threads(16).without_wisdom().run(|pe| {
            let pair = pe.world().split(Some(pe.world().rank().0 / 2), 0)?.expect("a colour");
            assert_eq!(choices(&pair), alone[0]);
            assert_ne!(choices(pe.world()), alone[0]);
            Ok(())
        })
    })
    .unwrap();
}
