//! Failures of PEs, and mistakes of programs, while nonblocking calls are in flight.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use consort::{
    Error, Rank, Team,
    error::{CallError, Failure, PlanError},
    nonblocking::Request,
    ops::Sum,
    tune::{Candidate, Collective},
};
use consort_conformance::{
    registry::one_each,
    turns::{LIMIT, alone, note},
};

use super::{check, start};
use crate::{
    data::Call,
    jobs::{SOON, fails, on, pes_of},
};

/// A PE panics while others are in the middle of each collective, by every algorithm.
fn a_death_in(collective: Collective) {
    alone(LIMIT, move || {
        for candidate in one_each(collective) {
            for words in [1, 2500] {
                note(format!("{candidate}, {words} words"));
                let since = Instant::now();
                let outcome = pes_of(4).force(collective, candidate.clone()).run(|pe| {
                    let world = pe.world();
                    let call = Call { collective, pes: 4, root: Rank(1), len: words, seed: 1 };
                    let request = match start(world, &call) {
                        Err(Error::Call(CallError::Plan(PlanError::Incapable { .. }))) => {
                            return Ok(());
                        }
                        request => request?,
                    };
                    check(&call, world.rank(), request.wait()?);
                    let later = start(world, &call)?;
                    if world.rank() == Rank(2) {
                        panic!("as planned");
                    }
                    let mut requests = vec![later];
                    loop {
                        requests.push(start(world, &call)?);
                        requests.swap_remove(0).wait()?;
                    }
                });
                assert!(since.elapsed() < SOON, "{candidate}: after {:?}", since.elapsed());
                if let Err(error) = outcome {
                    let named = matches!(&error, Error::PeFailed { rank: Rank(2), reason }
                        if reason.contains("as planned"));
                    assert!(named, "{candidate}: {error}");
                }
            }
        }
    });
}

#[test]
fn a_death_in_any_collective_is_reported() {
    Collective::EVERY.into_iter().for_each(a_death_in);
}

/// An operator that panics inside an operation, on the PE's thread or its helper's.
#[test]
fn an_operator_may_panic() {
    for helpers in [false, true] {
        let outcome = alone(LIMIT, move || {
            let pes = if helpers { pes_of(3).helper_threads() } else { pes_of(3) };
            pes.run(|pe| {
                let world = pe.world();
                let me = world.rank();
                let add = move |a: u64, b: u64| {
                    assert!(me != Rank(1), "no sums here");
                    a.wrapping_add(b)
                };
                let direct = Candidate::new("direct").with("block_bytes", 4096);
                world.algorithms().force(Collective::Reduce, Some(direct));
                let request = world.start(vec![1; 3000]).reduce(add, Rank(1))?;
                request.wait()?;
                world.barrier()
            })
        });
        let error = outcome.expect_err("an operator that panics");
        let text = error.to_string();
        assert!(text.contains("PE 1 failed: it panicked: no sums here"), "{text}");
    }
}

/// A PE that catches the panic and continues has failed the job nevertheless, because its peers
/// wait for messages that will never arrive.
#[test]
fn a_panic_that_is_caught_fails_the_job() {
    let error = fails(2, |world| {
        let me = world.rank();
        let add = move |a: u64, b: u64| {
            assert!(me != Rank(1), "no sums here");
            a.wrapping_add(b)
        };
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let request = world.start(vec![1; 10]).all_reduce(add)?;
            request.wait().map(drop)
        }));
        match caught {
            Ok(result) => result.and_then(|()| world.barrier()),
            Err(_) => world.barrier(),
        }
    });
    let named = matches!(&error, Error::PeFailed { rank: Rank(1), reason }
        if reason.contains("no sums"));
    assert!(named, "{error}");
}

#[test]
fn calls_that_do_not_match_are_reported() {
    let odd = |world: &Team| world.rank() == Rank(1);
    for polls in [false, true] {
        let error = fails(3, move |world| {
            let data = vec![1_u64; 2];
            let mut request = if odd(world) {
                world.start(data).all_reduce(Sum)?
            } else {
                world.start(data).broadcast(Rank(0))?
            };
            while polls && !request.test()? {}
            request.wait().and_then(|_| world.barrier())
        });
        let text = error.to_string();
        assert!(text.contains("PE 1 called start all_reduce(16 bytes"), "{text}");
        assert!(text.contains("called start broadcast(16 bytes"), "{text}");
    }
    // One PE waits in the call, and one does not.
    let error = fails(
        2,
        move |world| {
            if odd(world) { world.barrier() } else { world.start_barrier()?.wait() }
        },
    );
    let text = error.to_string();
    assert!(text.contains("PE 0 called start barrier()"), "{text}");
    assert!(text.contains("PE 1 called barrier()"), "{text}");
    // One PE makes no call, and the other leaves its call to the end.
    let error =
        fails(2, move |world| if odd(world) { Ok(()) } else { world.start_barrier().map(drop) });
    let finished = matches!(&error, Error::Mismatched(Failure::Finished { rank: Rank(1), .. }));
    assert!(finished, "{error}");
}

#[test]
fn requests_that_wait_for_each_other() {
    let error = fails(2, |world| {
        let (one, other) = (world.cartesian(1)?.row, world.cartesian(1)?.row);
        if world.rank() == Rank(0) {
            one.start(vec![1]).all_reduce(Sum)?.wait()?;
        }
        other.start_barrier()?.wait()
    });
    let Error::Mismatched(Failure::Deadlock { one, other }) = &error else { panic!("{error}") };
    let texts = format!("{} {}", one.1, other.1);
    assert!(texts.contains("start all_reduce") && texts.contains("start barrier"), "{error}");
    // They are started in the same order, and waited for in any order.
    on(pes_of(2), |world| {
        let (one, other) = (world.cartesian(1)?.row, world.cartesian(1)?.row);
        let mut requests = [one.start_barrier()?, other.start_barrier()?];
        if world.rank() == Rank(0) {
            requests.reverse();
        }
        requests.into_iter().try_for_each(Request::wait)
    });
}
