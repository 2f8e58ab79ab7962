//! Forming teams, and teams that cannot be formed.

use consort::{
    Error, Rank, Result, Team,
    error::{CallError, TeamError},
    ops::Sum,
    sync_modes::SyncModes,
};
use consort_conformance::turns::{LIMIT, alone, note};

use super::{collectives, members};
use crate::jobs::{on, pes_of};

#[test]
fn split_uses_colour_key_and_rank() {
    let all = alone(LIMIT, || {
        pes_of(7).run(|pe| {
            let world = pe.world();
            let me = world.rank().0;
            let color = (me != 6).then_some(me % 2 * 1000);
            let key = if me < 4 { 5 - i64::from(me) } else { i64::MIN };
            let team = world.with_sync(SyncModes::LOOSE).split(color, key)?;
            let team = team.map(|team| {
                assert_eq!(team.sync(), SyncModes::LOOSE);
                assert_eq!(members(&team)?[team.rank().index()], me);
                members(&team)
            });
            team.transpose()
        })
    });
    let all = all.unwrap();
    let (even, odd) = (Some(vec![4, 2, 0]), Some(vec![5, 3, 1]));
    let expected = [&even, &odd, &even, &odd, &even, &odd, &None];
    assert!(all.iter().eq(expected), "{all:?}");
}

#[test]
fn subsets_and_strides_have_the_listed_members() {
    on(pes_of(6), |world| {
        let ranks = |list: &[u32]| list.iter().copied().map(Rank).collect::<Vec<_>>();
        for (team, expected) in [
            (world.subset(&ranks(&[5, 0, 3]))?, vec![5, 0, 3]),
            (world.subset(&ranks(&[2]))?, vec![2]),
            (world.subset(&[])?, vec![]),
            (world.strided(Rank(1), 2, 3)?, vec![1, 3, 5]),
            (world.strided(Rank(5), -1, 6)?, vec![5, 4, 3, 2, 1, 0]),
            (world.strided(Rank(4), 0, 1)?, vec![4]),
            (world.strided(Rank(9), 3, 0)?, vec![]),
        ] {
            assert_eq!(team.is_some(), expected.contains(&world.rank().0));
            if let Some(team) = team {
                assert_eq!(members(&team)?, expected);
                collectives(&team, 1)?;
            }
        }
        Ok(())
    });
}

#[test]
fn grids_of_any_shape_have_rows_and_columns() {
    for (pes, rows) in [(1, 1), (5, 1), (5, 5), (6, 2), (16, 4)] {
        alone(LIMIT, move || {
            note(format!("{rows} rows of {pes} PEs"));
            pes_of(pes).run(|pe| {
                let grid = pe.world().cartesian(rows)?;
                let (row, column) = (grid.row, grid.column);
                assert_eq!((row.size(), column.size()), (pes / rows, rows));
                assert_eq!(members(&row)?[row.rank().index()], pe.world().rank().0);
                assert_eq!(members(&column)?[column.rank().index()], pe.world().rank().0);
                // Rows drift apart in time, and columns synchronize them again.
                for seed in 0..2 {
                    collectives(&row, seed)?;
                    collectives(&column, seed)?;
                }
                collectives(pe.world(), 3)
            })
        })
        .unwrap();
    }
}

/// A team of a team, in another order.
#[test]
fn team_of_a_freed_team_works() {
    on(pes_of(8), |world| {
        let me = world.rank().0;
        let half = world.split(Some(me / 4), -i64::from(me))?.expect("a colour");
        let pair = half.split(Some(half.rank().0 / 2), 0)?.expect("a colour");
        let first = me / 2 * 2;
        assert_eq!(members(&pair)?, [first + 1, first]);
        collectives(&pair, 7)?;
        half.free()?;
        collectives(&pair, 8)
    });
}

#[test]
fn invalid_teams_are_reported() {
    on(pes_of(4), |world| {
        let error_of = |result: Result<Option<Team>>| match result {
            Err(Error::Call(CallError::Team(error))) => error,
            other => panic!("{other:?}"),
        };
        let outside = TeamError::Outside { rank: 4, pes: 4 };
        assert_eq!(error_of(world.subset(&[Rank(0), Rank(4)])), outside);
        assert!(outside.to_string().contains("ranks 0 to 3"));
        assert_eq!(error_of(world.strided(Rank(2), 2, 2)), outside);
        assert_eq!(
            error_of(world.strided(Rank(1), -1, 3)),
            TeamError::Outside { rank: -1, pes: 4 }
        );
        for stride in [isize::MIN, isize::MAX] {
            let rank = (stride as i64).saturating_add(1);
            let error = error_of(world.strided(Rank(1), stride, 3));
            assert_eq!(error, TeamError::Outside { rank, pes: 4 });
        }
        assert_eq!(
            error_of(world.strided(Rank(1), 0, usize::MAX)),
            TeamError::Twice { rank: Rank(1) }
        );
        assert_eq!(
            error_of(world.subset(&[Rank(2), Rank(1), Rank(2)])),
            TeamError::Twice { rank: Rank(2) }
        );
        assert_eq!(error_of(world.strided(Rank(3), 0, 2)), TeamError::Twice { rank: Rank(3) });
        for rows in [0, 3, 8] {
            let error = world.cartesian(rows).err();
            assert_eq!(error, Some(TeamError::Rows { rows, pes: 4 }.into()));
        }
        assert_eq!(world.clone().free().err(), Some(TeamError::World.into()));
        world.barrier()
    });
}

/// The PEs of one row get a team; those of the other get an error, because there is no memory.
#[test]
fn grid_fails_only_on_pes_without_memory() {
    on(pes_of(4), |world| {
        let pair = world.subset(&[Rank(0), Rank(1)])?;
        let mut singles = Vec::new();
        loop {
            let single = world.subset(&[Rank(0)]);
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
            assert!(
                matches!(error, Error::Call(CallError::Team(TeamError::Memory { pes: 2, .. }))),
                "{error}"
            );
        }
        for single in singles.drain(..100).flatten() {
            single.free()?;
        }
        world.barrier()?;
        let all = world.strided(Rank(0), 1, 4)?.expect("all are in it");
        assert_eq!(all.all_reduce(1, Sum)?, 4, "all have counted the teams alike");
        Ok(())
    });
}
