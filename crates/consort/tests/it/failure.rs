//! A PE that fails: all others hear of it within a second, wherever they wait.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use consort::{
    Candidate, Collective, Error, Pe, Pes, Rank, Result, Sum, SyncModes, Team, Until, Waiting,
};
use consort_native::Failure;

use consort_collectives::{Setting, serves};
use consort_fabric::{OperatorClass, Query};
use consort_native::Job;

use crate::{
    registry::one_each,
    turns::{LIMIT, alone, note},
    typed,
};

/// How long others may take to hear of a failure.
const SOON: Duration = Duration::from_secs(1);
/// Calls that a PE makes at most before it must hear of it: several windows.
const CALLS: usize = 200;

/// What a PE received, and when.
type Heard = Mutex<Vec<(Rank, Error, Instant)>>;

/// When the victim failed.
#[derive(Default)]
struct Moment(Mutex<Option<Instant>>);

impl Moment {
    fn is_now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

/// Runs a program that fails on `victim`, which notes the moment, and by which all others get an
/// error; checks what they got. Returns the job's error.
fn fails<R: Send>(
    pes: Pes,
    count: u32,
    victim: Rank,
    program: impl Fn(&Pe, &Moment) -> Result<R> + std::marker::Sync,
) -> Error {
    let (received, moment) = (Heard::default(), Moment::default());
    let error = pes
        .run(|pe| {
            let result = program(pe, &moment);
            if let Err(error) = &result {
                let entry = (pe.world().rank(), error.clone(), Instant::now());
                received.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
            }
            result
        })
        .err()
        .expect("a job whose PE fails, fails");
    let failed = moment.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    let failed = failed.expect("the victim notes when it fails");
    let mut received = received.into_inner().unwrap_or_else(PoisonError::into_inner);
    received.retain(|(rank, ..)| *rank != victim);
    assert_eq!(received.len(), count as usize - 1, "some PE heard nothing");
    for (rank, error, when) in received {
        let named = matches!(&error, Error::PeFailed { rank, .. } if *rank == victim);
        assert!(named, "PE {rank} heard {error}, not that PE {victim} failed");
        let after = when.saturating_duration_since(failed);
        assert!(after < SOON, "PE {rank} heard after {after:?}");
    }
    error
}

/// Calls until an error comes of it.
fn call_on<R>(mut call: impl FnMut() -> Result<R>) -> Result<()> {
    for _ in 0..CALLS {
        call()?;
    }
    panic!("{CALLS} calls without the PE that failed");
}

/// One call of `collective`; symmetric buffers where modes let PEs leave early.
fn call(world: Team<'_>, collective: Collective, words: usize, sync: SyncModes) -> Result<()> {
    let root = Rank(1);
    let team = world.with(sync);
    let is_root = world.rank() == root;
    let source = vec![1_u64; collective.source_blocks(world.size(), is_root) as usize * words];
    let mut target = vec![0; collective.target_blocks(world.size(), is_root) as usize * words];
    typed::slices(team, collective, &source, &mut target, Sum, root)
}

/// The fewest words and the most that an algorithm serves: the longest messages take several steps.
fn few_and_many_words(collective: Collective, candidate: &Candidate, pes: u32) -> [usize; 2] {
    let is_served = |words: &usize| {
        let query = Query {
            collective,
            sync: SyncModes::MINE,
            pes,
            bytes: 8 * *words as u64,
            operator: OperatorClass::Commutative,
            symmetric: false,
        };
        serves(&Setting::of(&query, Job::capabilities_of(pes)), candidate)
    };
    let served: Vec<usize> = [1, 12, 100, 2500].into_iter().filter(is_served).collect();
    [*served.first().expect("one of them"), *served.last().expect("one of them")]
}

/// The victim panics instead of entering the call; the others are in it, at every place of the
/// algorithm.
fn instead_of_entering(collective: Collective, waiting: Waiting) {
    const PES: u32 = 4;
    alone(LIMIT, move || {
        for candidate in one_each(collective) {
            for victim in (0..PES).map(Rank) {
                let words = few_and_many_words(collective, &candidate, PES);
                for words in if collective == Collective::Barrier { &words[..1] } else { &words } {
                    let words = *words;
                    note(format!("{candidate}, {words} words, PE {victim} panics"));
                    let pes = Pes::threads(PES).waiting(waiting).heap_bytes(1 << 16);
                    let pes = pes.force(collective, candidate.clone());
                    let error = fails(pes, PES, victim, |pe, moment| {
                        let world = pe.world();
                        for _ in 0..3 {
                            call(world, collective, words, SyncModes::MINE)?;
                        }
                        if world.rank() == victim {
                            moment.is_now();
                            panic!("as planned");
                        }
                        call_on(|| call(world, collective, words, SyncModes::MINE))
                    });
                    assert!(error.to_string().contains("as planned"), "{error}");
                }
            }
        }
    });
}

macro_rules! fails_in {
    ($($name:ident: $collective:ident $waiting:ident;)*) => {$(
        #[test]
        fn $name() {
            instead_of_entering(Collective::$collective, Waiting::$waiting);
        }
    )*};
}

fails_in! {
    barriers_that_spin: Barrier Spin;
    barriers_that_yield: Barrier SpinYield;
    barriers_that_park: Barrier SpinYieldPark;
    broadcasts_that_spin: Broadcast Spin;
    broadcasts_that_yield: Broadcast SpinYield;
    broadcasts_that_park: Broadcast SpinYieldPark;
    reductions_that_spin: Reduce Spin;
    reductions_that_yield: Reduce SpinYield;
    reductions_that_park: Reduce SpinYieldPark;
    all_reductions_that_spin: AllReduce Spin;
    all_reductions_that_yield: AllReduce SpinYield;
    all_reductions_that_park: AllReduce SpinYieldPark;
    scatters: Scatter SpinYield;
    gathers: Gather SpinYield;
    all_gathers: AllGather SpinYield;
    exchanges: AllToAll SpinYield;
    reduce_scatters: ReduceScatter SpinYield;
    scans: Scan SpinYield;
    exclusive_scans: ExclusiveScan SpinYield;
}

/// Strict calls wait in their entry and exit barriers.
#[test]
fn strict_calls_hear_of_it() {
    alone(LIMIT, || {
        for barrier in one_each(Collective::Barrier) {
            for victim in (0..5).map(Rank) {
                let pes = Pes::threads(5).force(Collective::Barrier, barrier.clone());
                fails(pes.heap_bytes(1 << 16), 5, victim, |pe, moment| {
                    let world = pe.world();
                    call(world, Collective::Reduce, 10, SyncModes::STRICT)?;
                    if world.rank() == victim {
                        thread::sleep(Duration::from_millis(1));
                        moment.is_now();
                        panic!("as planned");
                    }
                    call_on(|| call(world, Collective::Broadcast, 10, SyncModes::STRICT))
                });
            }
        }
    });
}

/// Loose senders wait for nothing but credits.
#[test]
fn those_who_wait_for_credits_hear_of_it() {
    alone(LIMIT, || {
        for waiting in Waiting::EVERY {
            for (root, victim) in [(Rank(0), Rank(2)), (Rank(2), Rank(0)), (Rank(1), Rank(1))] {
                let pes = Pes::threads(3).waiting(waiting).heap_bytes(1 << 16);
                let pes = pes.force(Collective::Reduce, Candidate::new("flat"));
                let pes = pes.force(Collective::Broadcast, Candidate::new("flat"));
                fails(pes, 3, victim, |pe, moment| {
                    let world = pe.world();
                    let data = world.symmetric::<u64>(2)?;
                    let sum = world.symmetric::<u64>(2)?;
                    if world.rank() == victim {
                        thread::sleep(Duration::from_millis(5));
                        moment.is_now();
                        panic!("as planned");
                    }
                    let team = world.with(SyncModes::LOOSE);
                    if victim == root {
                        // Who contributes to a reduction waits for nobody.
                        call_on(|| team.reduce_symmetric(&data, &sum, Sum, root))
                    } else {
                        call_on(|| team.broadcast_symmetric(&data, root))
                    }
                });
            }
        }
    });
}

#[test]
fn those_who_wait_for_a_word_hear_of_it() {
    alone(LIMIT, || {
        for waiting in Waiting::EVERY {
            let pes = Pes::threads(3).waiting(waiting).heap_bytes(1 << 16);
            fails(pes, 3, Rank(1), |pe, moment| {
                let world = pe.world();
                let word = world.symmetric::<u64>(1)?;
                if world.rank() == Rank(1) {
                    thread::sleep(Duration::from_millis(50));
                    moment.is_now();
                    panic!("as planned");
                }
                word.wait_until(0, Until::Equals(1)).map(|_| ())
            });
        }
    });
}

/// An error that a PE returns of its own is a failure too, and is what the job returns.
#[test]
fn an_error_of_its_own_fails_the_job() {
    alone(LIMIT, || {
        let own = Error::Wisdom("nothing is known".to_owned());
        let error = fails(Pes::threads(3), 3, Rank(2), |pe, moment| {
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

/// Whatever a PE calls in a job that has failed, it hears of it.
#[test]
fn later_calls_hear_of_it_too() {
    alone(LIMIT, || {
        fails(Pes::threads(2), 2, Rank(1), |pe, moment| {
            let world = pe.world();
            let memory = world.symmetric::<u64>(1)?;
            if world.rank() == Rank(1) {
                moment.is_now();
                panic!("as planned");
            }
            let error = call_on(|| world.barrier()).expect_err("PE 1 is gone");
            // As the root, or on its own, a PE would not have to wait.
            let failed = Some(error.clone());
            assert_eq!(world.broadcast(1, Rank(0)).err(), failed);
            assert_eq!(world.reduce(1, Sum, Rank(1)).err(), failed);
            assert_eq!(world.all_reduce(1, Sum).err(), failed);
            assert_eq!(world.with(SyncModes::LOOSE).broadcast(1, Rank(0)).err(), failed);
            assert_eq!(world.symmetric::<u8>(1).err(), failed);
            assert_eq!(memory.wait_until(0, Until::Equals(1)).err(), failed);
            Err::<(), _>(error)
        });
    });
}

/// By every reduction, an operator that panics fails the PE that it runs on.
#[test]
fn an_operator_may_panic() {
    const PES: u32 = 4;
    alone(LIMIT, || {
        for candidate in one_each(Collective::Reduce) {
            let mut failures = 0;
            for culprit in (0..PES).map(Rank) {
                note(format!("{candidate}, the operator panics on PE {culprit}"));
                let pes = Pes::threads(PES).force(Collective::Reduce, candidate.clone());
                let outcome = pes.run(|pe| {
                    let world = pe.world();
                    let me = world.rank();
                    let add = |a: u64, b: u64| {
                        assert!(me != culprit, "no sums on PE {culprit}");
                        a.wrapping_add(b)
                    };
                    let source = vec![1; 2500];
                    let mut target = vec![0; if me == Rank(1) { 2500 } else { 0 }];
                    let result = world.reduce_slice(&source, &mut target, add, Rank(1));
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

/// While a peer copies from a buffer, its owner may not leave, whatever fails elsewhere.
#[test]
fn owners_stay_until_nobody_copies() {
    static SLOW: AtomicBool = AtomicBool::new(false);
    static PANICKING: AtomicBool = AtomicBool::new(false);
    fn await_flag(flag: &AtomicBool) {
        let since = Instant::now();
        while !flag.load(SeqCst) && since.elapsed() < SOON {
            thread::yield_now();
        }
    }
    /// Notes whether a PE unwinds while PE 0 still combines.
    struct Unwinding<'u>(&'u AtomicBool);
    impl Drop for Unwinding<'_> {
        fn drop(&mut self) {
            if thread::panicking() && SLOW.load(SeqCst) {
                self.0.store(true, SeqCst);
            }
        }
    }
    // PE 0 is slow in its operator, which reads what the others have exposed, when PE 2 panics in
    // its own: PE 1 returns with an error, PE 2 unwinds.
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
            let outcome = Pes::threads(3).force(Collective::Reduce, shared).run(|pe| {
                let world = pe.world();
                let me = world.rank();
                let source = vec![1; 5000];
                let mut target = vec![0; if me == Rank(0) { 5000 } else { 0 }];
                world.barrier()?;
                let unwinding = Unwinding(&too_early);
                let result = world.reduce_slice(&source, &mut target, operator(me), Rank(0));
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

/// Nothing of a failed job is left behind for the next.
#[test]
fn the_next_job_is_sound() {
    alone(LIMIT, || {
        for round in 0..20 {
            let outcome = Pes::threads(4).run(|pe| {
                let world = pe.world();
                world.barrier()?;
                assert!(world.rank() != Rank(round % 4), "as planned");
                world.reduce(1, Sum, Rank(0))
            });
            assert!(
                matches!(outcome, Err(Error::PeFailed { rank, .. }) if rank == Rank(round % 4))
            );
            let sums = Pes::threads(4).run(|pe| pe.world().reduce(1, Sum, Rank(3)));
            let sums = sums.expect("a job that goes well");
            assert_eq!(sums[3], (Rank(3), Some(4)));
        }
    });
}

/// A PE that has finished is missed by name, in any call that cannot end without it.
#[test]
fn a_pe_that_finishes_early_is_named() {
    alone(LIMIT, || {
        for collective in Collective::EVERY {
            for candidate in one_each(collective) {
                let [_, words] = few_and_many_words(collective, &candidate, 4);
                for quitter in (0..4).map(Rank) {
                    note(format!("{collective} by {candidate}, PE {quitter} finishes"));
                    let since = Instant::now();
                    let pes = Pes::threads(4).force(collective, candidate.clone());
                    let outcome = pes.run(|pe| {
                        let world = pe.world();
                        call(world, collective, words, SyncModes::MINE)?;
                        if world.rank() == quitter {
                            return Ok(());
                        }
                        call_on(|| call(world, collective, words, SyncModes::MINE))
                    });
                    let Err(Error::Mismatched(Failure::Finished { rank, waiting, call, .. })) =
                        &outcome
                    else {
                        panic!("{outcome:?}");
                    };
                    assert!(*rank == quitter && *waiting != quitter);
                    assert!(call.starts_with(collective.name()), "{call}");
                    let text = outcome.expect_err("an error").to_string();
                    assert!(text.contains(&format!("PE {quitter} finished")), "{text}");
                    assert!(since.elapsed() < SOON);
                }
            }
        }
    });
}

/// Nobody is left who could change the word that a PE waits for.
#[test]
fn a_wait_that_nobody_is_left_to_end_fails() {
    alone(LIMIT, || {
        for waiting in Waiting::EVERY {
            let since = Instant::now();
            let outcome = Pes::threads(3).waiting(waiting).run(|pe| {
                let world = pe.world();
                let word = world.symmetric::<u64>(1)?;
                if world.rank() == Rank(1) {
                    word.wait_until(0, Until::Equals(1))?;
                }
                Ok(())
            });
            let named = matches!(&outcome, Err(Error::Mismatched(Failure::Finished {
                waiting, ..
            })) if *waiting == Rank(1));
            assert!(named, "{outcome:?}");
            assert!(since.elapsed() < SOON);
        }
    });
}
