//! Handlers of asynchronous broadcasts that panic.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use consort::Rank;
use consort_conformance::turns::{LIMIT, alone};

use crate::jobs::pes_of;

/// The reaction of a PE's program to the panic of its handler.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Dies,
    GoesOn,
    Ends,
}

/// A handler that panics in the call that closes its asynchronous broadcasts fails the job, and so
/// does a panic that drops them, once the program is known to have caught it.
#[test]
fn panicking_handler_fails_the_job() {
    for then in [Then::Dies, Then::GoesOn, Then::Ends] {
        for closes in [false, true] {
            let outcome = alone(LIMIT / 6, move || {
                pes_of(3).run(|pe| {
                    let world = pe.world();
                    let caught = catch_unwind(AssertUnwindSafe(|| {
                        let is_last = world.rank() == Rank(2);
                        let mut broadcasts = world.async_broadcasts(|_, _| {
                            assert!(!is_last, "not taken");
                        })?;
                        if world.rank() == Rank(0) {
                            broadcasts.broadcast(b"take")?;
                        }
                        if is_last && !closes {
                            broadcasts.wait()?;
                        }
                        broadcasts.close()
                    }));
                    match caught {
                        Ok(made) => made?,
                        Err(panic) if then == Then::Dies => resume_unwind(panic),
                        Err(_) if then == Then::Ends => return Ok(()),
                        Err(_) => {}
                    }
                    world.barrier()
                })
            });
            let text = outcome.expect_err("PE 2 panics").to_string();
            let own_words = closes || then == Then::Dies;
            let reason =
                if own_words { "it panicked: not taken" } else { "it caught a panic that dropped" };
            assert!(text.contains(&format!("PE 2 failed: {reason}")), "{text}");
        }
    }
}

/// A program that catches the panic of a handler, and still has its asynchronous broadcasts, has
/// lost one message.
#[test]
fn a_handler_that_panics_may_be_called_again() {
    let received = alone(LIMIT / 6, || {
        pes_of(2).run(|pe| {
            let world = pe.world();
            let mut received = Vec::new();
            let mut broadcasts = world.async_broadcasts(|_, data| {
                received.push(data[0]);
                assert!(data[0] != 1, "not this one");
            })?;
            if world.rank() == Rank(0) {
                for byte in 0..3 {
                    broadcasts.broadcast(&[byte])?;
                }
            } else {
                let mut came = true;
                while came {
                    came =
                        catch_unwind(AssertUnwindSafe(|| broadcasts.wait())).unwrap_or(Ok(true))?;
                }
            }
            broadcasts.close()?;
            Ok(received)
        })
    });
    assert_eq!(received.unwrap()[1], [0, 1, 2]);
}
