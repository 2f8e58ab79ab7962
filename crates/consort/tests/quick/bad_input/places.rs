//! Errors name the file and line of each call, on every PE.

use std::{panic::Location, sync::mpsc::channel};

use consort::{Error, Rank, Result, Team, ops::Sum, sync_modes::SyncModes};
use consort_native::Failure;

use crate::jobs::{fails, on, pes_of};

/// Returns the line after the caller's, as errors show it.
#[track_caller]
fn next_line() -> String {
    let here = Location::caller();
    format!(" at {}:{}", here.file(), here.line() + 1)
}

/// Two PEs make these calls: the error names both call sites. Each call returns its call site.
fn differ(
    zero: impl Fn(&Team) -> (String, Result<()>) + Send + Sync + 'static,
    one: impl Fn(&Team) -> (String, Result<()>) + Send + Sync + 'static,
) {
    let (send, places) = channel();
    let error = fails(2, move |world| {
        world.barrier()?;
        let rank = world.rank();
        let (place, done) = if rank == Rank(0) { zero(world) } else { one(world) };
        send.send((rank, place)).expect("somebody receives");
        done?;
        world.barrier()
    });
    let mut places: Vec<_> = places.iter().collect();
    places.sort_unstable();
    let Error::Mismatched(Failure::Mismatched { one, other, .. }) = &error else {
        panic!("{error}");
    };
    for ((rank, call), place) in [one, other].into_iter().zip(places) {
        assert!(*rank == place.0 && call.ends_with(&place.1), "{error}\nis not{}", place.1);
    }
}

fn barrier(world: &Team) -> (String, Result<()>) {
    let place = next_line();
    let done = world.barrier();
    (place, done)
}

#[test]
fn mismatch_names_the_places_of_blocking_calls() {
    differ(barrier, |world| {
        let place = next_line();
        let done = world.broadcast(1, Rank(0)).map(drop);
        (place, done)
    });
    differ(barrier, |world| {
        let place = next_line();
        let done = world.in_place(&mut [1_u8; 3]).all_reduce(Sum);
        (place, done)
    });
    differ(barrier, |world| {
        let place = next_line();
        let done = world.values(&[1_u8; 3]).uneven().gather(Rank(0)).map(drop);
        (place, done)
    });
    differ(barrier, |world| {
        let place = next_line();
        let done = world.symmetric::<u64>(3).map(drop);
        (place, done)
    });
    differ(barrier, |world| {
        let place = next_line();
        let done = world.split(Some(1), 0).map(drop);
        (place, done)
    });
}

#[test]
fn mismatch_names_the_places_of_nonblocking_calls() {
    differ(barrier, |world| {
        let place = next_line();
        let started = world.start(vec![1]).all_reduce(Sum);
        (place, started.and_then(|call| call.wait().map(drop)))
    });
    differ(barrier, |world| {
        let sums = world.plan::<u32>(1).all_reduce(Sum).expect("a plan");
        let place = next_line();
        let started = sums.start(vec![1]);
        (place, started.and_then(|call| call.wait().map(drop)))
    });
    differ(barrier, |world| {
        let mut place = String::new();
        let done = world.overlap(|scope| {
            place = next_line();
            let call = scope.start_into(&[1], Vec::leak(vec![0])).all_reduce(Sum)?;
            call.wait().map(drop)
        });
        (place, done)
    });
    differ(barrier, |world| {
        let broadcasts = world.async_broadcasts(|_, _| ()).expect("memory for them");
        let place = next_line();
        let done = broadcasts.close();
        (place, done)
    });
}

/// One line makes calls that match and one that does not, more calls than the log holds.
#[test]
fn place_of_a_mismatch_in_a_loop_is_named() {
    differ(
        |world| {
            (0..300).for_each(|_| world.barrier().expect("they match"));
            let place = next_line();
            let done = (0..9).try_for_each(|call| world.in_place(&mut [call]).all_reduce(Sum));
            (place, done)
        },
        |world| {
            (0..300).for_each(|_| world.barrier().expect("they match"));
            let place = next_line();
            let done = (1..9).try_for_each(|len| world.in_place(&mut vec![1; len]).all_reduce(Sum));
            (place, done)
        },
    );
}

/// A call matches the same call from any line.
#[test]
fn calls_at_different_lines_match() {
    on(pes_of(3), |world| {
        let one = |world: &Team| world.all_reduce(1, Sum);
        let other = |world: &Team| world.all_reduce(1, Sum);
        for _ in 0..200 {
            let sum = if world.rank() == Rank(1) { one(world)? } else { other(world)? };
            assert_eq!(sum, 3);
        }
        Ok(())
    });
}

#[test]
fn place_of_the_call_that_waits_for_a_finished_pe_is_named() {
    let error = fails(2, |world| {
        if world.rank() == Rank(0) {
            return Ok(());
        }
        world.with_sync(SyncModes::STRICT).broadcast(1, Rank(0)).map(drop)
    });
    let Error::Mismatched(Failure::Finished { rank: Rank(0), waiting: Rank(1), call, .. }) = &error
    else {
        panic!("{error}");
    };
    let place = format!(" at {}:{}", file!(), line!() - 6);
    assert!(call.ends_with(&place), "{error}\nis not{place}");
}

#[test]
fn deadlock_between_teams_names_the_places_of_both_calls() {
    let error = fails(3, |world| {
        let pair = world.subset(&[Rank(2), Rank(1)])?;
        match pair.filter(|_| world.rank() == Rank(2)) {
            Some(pair) => pair.barrier()?,
            None => world.barrier()?,
        }
        Ok(())
    });
    let Error::Mismatched(Failure::Deadlock { one, other }) = &error else { panic!("{error}") };
    let line = line!();
    let places = [line - 6, line - 5].map(|line| format!(" at {}:{line}", file!()));
    for (rank, call) in [one, other] {
        let (place, other) = (&places[usize::from(rank.0 != 2)], &places[usize::from(rank.0 == 2)]);
        assert!(call.contains(place.as_str()) && !call.contains(other.as_str()), "{error}");
    }
}
