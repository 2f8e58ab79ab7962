//! Operators that panic, and owners of buffers that panic while a peer still copies from them.

use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use consort::{
    Error, Job, Rank,
    tune::{Candidate, Collective},
};
use consort_conformance::{
    registry::one_each,
    turns::{LIMIT, alone, note},
};

use crate::jobs::SOON;

/// In every reduction, an operator that panics fails the PE on which it runs.
///
/// If PEs draw their shares, the culprit may draw none in some jobs: then the test runs again.
#[test]
fn an_operator_may_panic() {
    const PES: usize = 4;
    const ROUNDS: usize = 50;
    alone(LIMIT, || {
        for candidate in one_each(Collective::Reduce) {
            let mut failures = 0;
            for culprit in (0..ROUNDS * PES).map(|turn| Rank::new(turn % PES)) {
                if culprit == Rank(0) && failures > 0 {
                    break;
                }
                note(format!("{candidate}, the operator panics on PE {culprit}"));
                let pes = Job::threads(PES).force(Collective::Reduce, candidate.clone());
                let outcome = pes.run(|pe| {
                    let world = pe.world();
                    let me = world.rank();
                    let add = |a: u64, b: u64| {
                        assert!(me != culprit, "no sums on PE {culprit}");
                        a.wrapping_add(b)
                    };
                    let source = vec![1; 2500];
                    let mut target = vec![0; if me == Rank(1) { 2500 } else { 0 }];
                    let result = world.slices(&source, &mut target).reduce(add, Rank(1));
                    result.and_then(|()| world.barrier())
                });
                if let Err(error) = outcome {
                    let named = matches!(&error, Error::PeFailed { rank, reason }
                        if *rank == culprit && reason.contains("no sums"));
                    assert!(named, "{candidate}: {error}");
                    failures += 1;
                }
            }
            assert!(failures > 0, "{candidate} combines nowhere");
        }
    });
}

/// While a peer copies from a buffer, its owner may not leave, even if something fails elsewhere.
#[test]
fn owner_stays_while_a_peer_copies() {
    static SLOW: AtomicBool = AtomicBool::new(false);
    static PANICKING: AtomicBool = AtomicBool::new(false);
    fn await_flag(flag: &AtomicBool) {
        let since = Instant::now();
        while !flag.load(SeqCst) && since.elapsed() < SOON {
            thread::yield_now();
        }
    }
    /// Records whether a PE unwinds while PE 0 still combines.
    struct Unwinding<'u>(&'u AtomicBool);
    impl Drop for Unwinding<'_> {
        fn drop(&mut self) {
            if thread::panicking() && SLOW.load(SeqCst) {
                self.0.store(true, SeqCst);
            }
        }
    }
    // PE 0 is slow in its operator, which reads the others' exposed data, when PE 2 panics in its
    // own operator: PE 1 returns with an error, PE 2 unwinds.
    let operator = |me: Rank| {
        move |a: u64, b: u64| {
            match me.0 {
                0 if !SLOW.load(SeqCst) && !PANICKING.load(SeqCst) => {
                    SLOW.store(true, SeqCst);
                    await_flag(&PANICKING);
                    thread::sleep(Duration::from_millis(100));
                    SLOW.store(false, SeqCst);
                }
                0 => {}
                1 => await_flag(&PANICKING),
                _ => {
                    await_flag(&SLOW);
                    PANICKING.store(true, SeqCst);
                    panic!("as planned");
                }
            }
            a.wrapping_add(b)
        }
    };
    alone(LIMIT, move || {
        for _ in 0..5 {
            PANICKING.store(false, SeqCst);
            let too_early = AtomicBool::new(false);
            let shared = Candidate::new("shared").with("chunk_bytes", 4096);
            let outcome = Job::threads(3).force(Collective::Reduce, shared).run(|pe| {
                let world = pe.world();
                let me = world.rank();
                let source = vec![1; 5000];
                let mut target = vec![0; if me == Rank(0) { 5000 } else { 0 }];
                world.barrier()?;
                let unwinding = Unwinding(&too_early);
                let result = world.slices(&source, &mut target).reduce(operator(me), Rank(0));
                if me == Rank(1) {
                    assert!(!SLOW.load(SeqCst), "left while PE 0 copies");
                }
                drop(unwinding);
                result
            });
            let named = matches!(&outcome, Err(Error::PeFailed { rank, reason })
                if *rank == Rank(2) && reason.contains("as planned"));
            assert!(named, "{outcome:?}");
            assert!(!too_early.load(SeqCst), "unwound while PE 0 copies");
        }
    });
}
