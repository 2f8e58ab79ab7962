//! Results, payloads and operators whose `Drop` panics.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    thread,
    time::Duration,
};

use consort::{Pe, Rank, Result, sync_modes::SyncModes};
use consort_conformance::turns::{LIMIT, alone};

use super::{Bad, Fault, Faulty};
use crate::jobs::pes_of;

/// Runs a program with and without helpers; it must soon return an error, and not panic.
fn fails<R: Send + 'static>(program: impl Fn(&Pe) -> Result<R> + Sync + Copy + Send + 'static) {
    for helpers in [false, true] {
        let text = alone(LIMIT / 6, move || {
            let pes = if helpers { pes_of(2).helper_threads() } else { pes_of(2) };
            match catch_unwind(AssertUnwindSafe(|| pes.run(program))) {
                Ok(outcome) => outcome.err().map(|error| error.to_string()),
                Err(panic) => {
                    Box::leak(panic); // dropped, it would panic again
                    None
                }
            }
        });
        assert!(text.is_some(), "helpers: {helpers}: no error, but a panic or a result");
    }
}

/// The launch drops the result of one PE, because the other has failed.
#[test]
fn result_drop_panic_after_a_failure_is_contained() {
    fails(|pe| {
        if pe.world().rank() == Rank(0) {
            return Ok(Bad(2));
        }
        thread::sleep(Duration::from_millis(20));
        panic!("as planned")
    });
}

/// A PE drops its own result, because its calls have not matched.
#[test]
fn result_drop_panic_after_a_mismatch_is_contained() {
    fails(|pe| {
        let world = pe.world().with_sync(SyncModes::LOOSE);
        if world.rank() == Rank(0) {
            thread::sleep(Duration::from_millis(20));
            return Ok(Bad(2));
        }
        let data = world.symmetric::<u64>(1)?;
        world.in_symmetric(&data, &data).broadcast(Rank(1))?;
        Ok(Bad(0))
    });
}

/// A PE drops its own result, because one of its pending calls has failed.
#[test]
fn result_drop_panic_after_its_calls_is_contained() {
    fails(|pe| {
        let world = pe.world();
        if world.rank() == Rank(0) {
            drop(world.start_barrier()?);
            return Ok(Bad(2));
        }
        thread::sleep(Duration::from_millis(20));
        panic!("as planned")
    });
}

#[test]
fn payload_drop_panic_is_contained() {
    fails(|pe| -> Result<()> {
        if pe.world().rank() == Rank(0) {
            panic_any(Bad(3));
        }
        pe.world().barrier()
    });
}

/// The operator of a nonblocking call panics, on the helper's thread if there is one.
#[test]
fn operator_payload_drop_panic_is_contained() {
    fails(|pe| {
        let world = pe.world();
        let fault = if world.rank() == Rank(0) { Fault::BadPayload } else { Fault::None };
        let request = world.start(vec![1; 10]).all_reduce(Faulty::new(fault))?;
        thread::sleep(Duration::from_millis(20));
        request.wait()?;
        world.barrier()
    });
}

/// Operators of calls in flight, in a failed job.
#[test]
fn operator_drop_panic_is_contained() {
    fails(|pe| -> Result<()> {
        let world = pe.world();
        if world.rank() == Rank(1) {
            thread::sleep(Duration::from_millis(20));
            panic!("as planned");
        }
        for _ in 0..3 {
            drop(world.start(vec![1; 10]).all_reduce(Faulty::new(Fault::BadDrop))?);
        }
        world.barrier()
    });
}
