//! Mismatches, deadlocks and deaths of PEs in calls of teams.

use std::{thread, time::Duration};

use consort::{Error, Rank, Team, Waiting, error::Failure, ops::Sum, sync_modes::SyncModes};
use consort_conformance::turns::alone;

use crate::jobs::{SOON, fails, on, pes_of};

#[test]
fn mismatches_in_a_team_are_reported_with_ranks_of_the_world() {
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

/// The calls that form teams must match like other calls.
#[test]
fn making_teams_must_match() {
    let assert_names = |error: &Error, names: [&str; 2]| {
        let text = error.to_string();
        assert!(names.iter().all(|name| text.contains(name)), "{names:?} in {text}");
    };
    let odd = |world: &Team| world.rank() == Rank(1);
    let error =
        fails(
            3,
            move |world| {
                if odd(world) { world.split(Some(0), 0).map(drop) } else { world.barrier() }
            },
        );
    assert_names(&error, ["PE 1 called split()", "called barrier()"]);
    let error = fails(3, move |world| world.strided(Rank(odd(world).into()), 1, 2).map(drop));
    assert_names(&error, ["PE 1 called strided(1, 1, 2)", "called strided(0, 1, 2)"]);
    let error = fails(3, move |world| {
        if odd(world) { world.subset(&[Rank(2)]).map(drop) } else { world.cartesian(3).map(drop) }
    });
    assert_names(&error, ["PE 1 called subset(2)", "called cartesian(3)"]);
    let error = fails(3, move |world| {
        let team = world.strided(Rank(0), 1, 3)?.expect("all are in it");
        if odd(world) { team.barrier() } else { team.free() }
    });
    assert_names(&error, ["PE 1 called barrier()", "called free()"]);
}

#[test]
fn pe_that_leaves_its_team_is_reported() {
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

/// A PE's failure in a call of its team is an error on all: in that call, another team's, or none.
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

/// Each PE forms a pair with the next one, and all call the pair with the left one first.
#[test]
fn deadlock_in_a_ring_of_teams_is_reported() {
    for waiting in Waiting::EVERY {
        let error = alone(2 * SOON, move || {
            pes_of(5).waiting(waiting).run(|pe| {
                let world = pe.world();
                let mut pairs = Vec::new();
                for first in (0..5).map(Rank) {
                    pairs.push(world.subset(&[first, first.plus(1, 5)])?);
                }
                let pair = |first: Rank| pairs[first.index()].as_ref().expect("in both");
                pair(world.left()).barrier()?;
                pair(world.rank()).barrier()
            })
        });
        let error = error.expect_err("a deadlock");
        assert!(matches!(error, Error::Mismatched(Failure::Deadlock { .. })), "{error}");
    }
}

/// PEs that wait for one that computes are not a deadlock, however long it takes.
#[test]
fn pe_that_waits_long_is_not_stuck() {
    on(pes_of(4), |world| {
        let world = world.with_sync(SyncModes::LOOSE);
        let low = world.strided(Rank(0), 1, 3)?;
        let pair = world.subset(&[Rank(0), Rank(2)])?;
        // In the first, 2 waits for the root, 1. In the second, 0 waits for 2, and has not begun
        // the first.
        if world.rank() == Rank(1) {
            thread::sleep(Duration::from_millis(400));
        }
        if world.rank() == Rank(0) {
            pair.as_ref().expect("0 is in it").barrier()?;
        }
        if let Some(low) = low {
            low.broadcast(1, Rank(1))?;
        }
        if world.rank() == Rank(2) {
            pair.as_ref().expect("2 is in it").barrier()?;
        }
        world.barrier()
    });
}
