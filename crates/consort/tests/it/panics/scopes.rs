//! Scopes that end by panics: nothing is written to the memory that they borrowed.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind},
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
    thread,
    time::Instant,
};

use consort::{
    Rank,
    tune::{Candidate, Collective},
};
use consort_conformance::{
    registry::one_each,
    turns::{LIMIT, alone, note},
};

use super::{Bad, Fault, Faulty};
use crate::jobs::{on, pes_of};

/// Waits for another thread, outside the library.
fn until(flag: &AtomicBool) {
    let since = Instant::now();
    while !flag.load(Acquire) {
        assert!(since.elapsed() < LIMIT / 2, "nobody raises the flag");
        thread::yield_now();
    }
}

/// The end of a scope's closure.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Panics,
    PanicsBadly,
    Returns,
    ReturnsBad,
}

/// Two all-reduces on borrowed memory, whose messages have arrived. The first fails on PE 0, and
/// the closure may fail too. Once the scope has ended, nobody writes to the borrowed memory.
fn a_scope_is_left(candidate: &Candidate, fault: Fault, ending: Ending) {
    static STARTED: AtomicBool = AtomicBool::new(false);
    static SENT: AtomicBool = AtomicBool::new(false);
    STARTED.store(false, Relaxed);
    SENT.store(false, Relaxed);
    let outcome = pes_of(2).force(Collective::AllReduce, candidate.clone()).run(|pe| {
        let world = pe.world();
        let is_first = world.rank() == Rank(0);
        let (source, mut one, mut two) = (vec![5; 12], vec![1; 12], vec![1; 12]);
        if !is_first {
            until(&STARTED);
        }
        let left = catch_unwind(AssertUnwindSafe(|| {
            world.overlap(|scope| {
                let first = Faulty::new(if is_first { fault } else { Fault::None });
                scope.start_into(&source, &mut one).all_reduce(first)?;
                scope.start_into(&source, &mut two).all_reduce(Faulty::new(Fault::None))?;
                if !is_first {
                    SENT.store(true, Release);
                    return Ok(Bad(0));
                }
                STARTED.store(true, Release);
                until(&SENT);
                match ending {
                    Ending::Panics => panic!("as planned"),
                    Ending::PanicsBadly => panic_any(Bad(2)),
                    Ending::Returns => Ok(Bad(0)),
                    Ending::ReturnsBad => Ok(Bad(2)),
                }
            })
        }));
        let (seen, copy) = (&two, two.clone());
        let moved_on = catch_unwind(AssertUnwindSafe(|| world.progress()));
        assert_eq!(*seen, copy, "written to after the scope was left");
        match moved_on {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                if let Err(panic) = left {
                    drop(catch_unwind(AssertUnwindSafe(|| drop(panic))));
                }
                return Err(error);
            }
            Err(panic) => resume_unwind(panic),
        }
        match left {
            Ok(left) => left.map(drop),
            Err(panic) => resume_unwind(panic),
        }
    });
    let error = outcome.expect_err("PE 0 fails");
    let reason = match (ending, fault) {
        (Ending::Panics, _) => "as planned",
        (Ending::Returns | Ending::ReturnsBad, Fault::Text) => "no sums here",
        _ => "no message",
    };
    let text = error.to_string();
    assert_eq!(text, format!("PE 0 failed: it panicked: {reason}"), "{fault:?}, {ending:?}");
}

#[test]
fn nothing_borrowed_is_written_to_after_its_scope() {
    alone(LIMIT, || {
        for candidate in one_each(Collective::AllReduce) {
            for fault in [Fault::Text, Fault::BadPayload, Fault::BadDrop] {
                for ending in
                    [Ending::Panics, Ending::PanicsBadly, Ending::Returns, Ending::ReturnsBad]
                {
                    note(format!("{candidate}: {fault:?}, {ending:?}"));
                    if candidate.algorithm != "oc_bcast" {
                        a_scope_is_left(&candidate, fault, ending);
                    }
                }
            }
        }
    });
}

/// The result of a scope whose calls succeed belongs to the program, even if dropping it panics.
#[test]
fn scope_returns_a_result_that_panics_in_drop() {
    on(pes_of(2), |world| {
        let mut data = [world.rank().0; 100];
        let kept = world.overlap(|scope| {
            scope.start_in_place(&mut data).broadcast(Rank(1))?;
            Ok(Bad(1))
        })?;
        assert_eq!(data, [1; 100]);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(kept))).is_err());
        world.barrier()
    });
}
