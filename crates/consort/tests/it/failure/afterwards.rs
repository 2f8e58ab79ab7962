//! The effect of a failure on later calls, on the launch and on the next job.

use consort::{Error, Job, Rank, ops::Sum, symmetric::Until, sync_modes::SyncModes};
use consort_conformance::turns::{LIMIT, alone};

use super::{call_on, fails};

/// An error that a PE's program returns is a failure too, and the job returns it.
#[test]
fn error_returned_by_a_pe_fails_the_job() {
    alone(LIMIT, || {
        let own = Error::Wisdom("nothing is known".to_owned());
        let error = fails(Job::threads(3), 3, Rank(2), |pe, moment| {
            let world = pe.world();
            world.barrier()?;
            if world.rank() == Rank(2) {
                moment.is_now();
                return Err(own.clone());
            }
            let error = call_on(|| world.barrier());
            assert!(
                matches!(&error, Err(Error::PeFailed { reason, .. }) if reason.contains("known"))
            );
            error
        });
        assert_eq!(error, own);
    });
}

/// Every call in a failed job returns the error.
#[test]
fn later_calls_fail_too() {
    alone(LIMIT, || {
        fails(Job::threads(2), 2, Rank(1), |pe, moment| {
            let world = pe.world();
            let memory = world.symmetric::<u64>(1)?;
            if world.rank() == Rank(1) {
                moment.is_now();
                panic!("as planned");
            }
            let error = call_on(|| world.barrier()).expect_err("PE 1 is gone");
            // As the root, or alone, a PE would not have to wait.
            let failed = Some(error.clone());
            assert_eq!(world.broadcast(1, Rank(0)).err(), failed);
            assert_eq!(world.reduce(1, Sum, Rank(1)).err(), failed);
            assert_eq!(world.all_reduce(1, Sum).err(), failed);
            assert_eq!(world.with_sync(SyncModes::LOOSE).broadcast(1, Rank(0)).err(), failed);
            assert_eq!(world.symmetric::<u8>(1).err(), failed);
            assert_eq!(memory.wait_until(0, Until::Equals(1)).err(), failed);
            Err::<(), _>(error)
        });
    });
}

/// A failed job leaves nothing behind for the next one.
#[test]
fn the_next_job_is_sound() {
    alone(LIMIT, || {
        for round in 0..20 {
            let outcome = Job::threads(4).run(|pe| {
                let world = pe.world();
                world.barrier()?;
                assert!(world.rank() != Rank(round % 4), "as planned");
                world.reduce(1, Sum, Rank(0))
            });
            assert!(
                matches!(outcome, Err(Error::PeFailed { rank, .. }) if rank == Rank(round % 4))
            );
            let sums = Job::threads(4).run(|pe| pe.world().reduce(1, Sum, Rank(3)));
            let sums = sums.expect("a job that goes well");
            assert_eq!(sums[3], Some(4));
        }
    });
}
