//! Operators that call the library.

#![expect(unsafe_code, reason = "smuggles a team into an operator, as only unsafe code can")]

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use consort::{Error, Job, Rank, Result, Team, error::CallError, ops::Sum, tune::Collective};

use super::on;

/// Moves a team to a place where it does not belong.
struct Smuggled<'p>(&'p Team);

// SAFETY: the operator that gets it runs on the thread to which the team belongs.
unsafe impl Sync for Smuggled<'_> {}

impl Smuggled<'_> {
    fn broadcast(&self, bytes: usize) -> Result<()> {
        self.0.in_place(&mut vec![0_u8; bytes]).broadcast(Rank(0))
    }

    fn choose(&self) -> thread::Result<()> {
        let force = || self.0.algorithms().force(Collective::AllReduce, None);
        catch_unwind(AssertUnwindSafe(force))
    }

    fn call_everything(&self) -> Vec<Option<Error>> {
        let world = self.0;
        vec![
            world.barrier().err(),
            world.broadcast(1, Rank(0)).err(),
            world.reduce(1, Sum, Rank(0)).err(),
            world.symmetric::<u64>(1).err(),
            world.completion_counter().err(),
            world.split(Some(1), 0).err(),
            world.start_barrier().err(),
            world.start(vec![1]).broadcast(Rank(0)).err(),
            world.progress().err(),
        ]
    }
}

#[test]
fn operators_may_not_call_the_library() {
    let results = on(Job::threads(2), |world| {
        let smuggled = Smuggled(world);
        let memory = world.symmetric::<u64>(1)?;
        let add = |a: u64, b: u64| {
            for error in smuggled.call_everything() {
                assert_eq!(error, Some(Error::Call(CallError::Reentrant)));
            }
            a + b
        };
        let sum = world.reduce(1, add, Rank(0))?;
        assert_eq!(sum, (world.rank() == Rank(0)).then_some(2));
        // Also in an operation, which any call drives.
        let mut all = [0];
        world.overlap(|scope| {
            let request = scope.start_into(&[1], &mut all).all_reduce(add)?;
            world.barrier()?;
            request.wait().map(drop)
        })?;
        assert_eq!(all, [2]);
        // The number of allocations still agrees.
        let again = world.symmetric::<u64>(1)?;
        again.put(world.right(), 0, &[3])?;
        world.barrier()?;
        assert_eq!((again.load(0)?, memory.load(0)?), (3, 0));
        world.barrier()
    });
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// Holds while the plan of the served call is in use, and for a call without a plan.
#[test]
fn operators_may_not_plan_calls_either() {
    let results = on(Job::threads(2), |world| {
        let smuggled = Smuggled(world);
        for round in 1..4 {
            let add = |a: u64, b: u64| {
                assert_eq!(smuggled.broadcast(round), Err(Error::Call(CallError::Reentrant)));
                a + b
            };
            assert_eq!(world.all_reduce(1, add)?, 2);
        }
        world.barrier()
    });
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// The plans of the team are in use.
#[test]
fn operators_may_not_choose_algorithms() {
    let results = on(Job::threads(2), |world| {
        let smuggled = Smuggled(world);
        for _ in 0..2 {
            let add = |a: u64, b: u64| {
                let refused = smuggled.choose().expect_err("it is in a call");
                let text = refused.downcast_ref::<&str>().copied();
                let reason = "an operator may not choose algorithms: it runs inside a call";
                assert_eq!(text, Some(reason));
                a + b
            };
            assert_eq!(world.all_reduce(1, add)?, 2);
        }
        world.barrier()
    });
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}
