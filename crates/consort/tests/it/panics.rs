//! Panics of operators, closures, payloads and results, caught or not: no memory is touched after
//! its time, all PEs hear the panicking PE's own words, and nobody hangs.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind},
    sync::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
    thread,
    time::{Duration, Instant},
};

use consort::{
    Candidate, Collective, Error, Operator, Pe, Pes, PlanError, Rank, Result, SyncModes, Team,
};
use consort_fabric::OperatorClass;

use crate::{
    registry::one_each,
    turns::{LIMIT, alone, note},
    typed,
};

/// How long a job that fails may take.
const SOON: Duration = Duration::from_secs(2);

fn pes_of(pes: u32) -> Pes {
    Pes::threads(pes).heap_bytes(1 << 20)
}

/// Panics when it is dropped, with one that does so once less.
#[derive(Debug)]
struct Bad(u32);

impl Drop for Bad {
    fn drop(&mut self) {
        // A second panic while a first unwinds would end the process.
        if self.0 > 0 && !thread::panicking() {
            panic_any(Self(self.0 - 1));
        }
    }
}

/// Waits for what a thread does outside of the library.
fn until(flag: &AtomicBool) {
    let since = Instant::now();
    while !flag.load(Acquire) {
        assert!(since.elapsed() < LIMIT / 2, "nobody raises the flag");
        thread::yield_now();
    }
}

/// What an operator of these tests does on PE 0.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Panics with a text.
    Text,
    /// Panics with a payload whose `Drop` panics.
    BadPayload,
    /// Panics when it is dropped.
    BadDrop,
}

struct Faulty {
    fault: Fault,
    drops: Bad,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        Self { fault, drops: Bad(u32::from(fault == Fault::BadDrop)) }
    }
}

impl Operator<u64> for Faulty {
    const CLASS: OperatorClass = OperatorClass::Commutative;
    const NAME: &'static str = "faulty";

    fn apply(&self, left: u64, right: u64) -> u64 {
        match self.fault {
            Fault::Text => panic!("no sums here"),
            Fault::BadPayload => panic_any(Bad(2)),
            Fault::None | Fault::BadDrop => {}
        }
        left + right + u64::from(self.drops.0 > 1)
    }
}

/// What the closure of a scope comes to.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Panics,
    PanicsBadly,
    Returns,
    ReturnsBad,
}

/// Two all-reduces on borrowed memory, whose messages have come; the first fails on PE 0, and so
/// may the closure. Once the scope is left nobody writes to what it has borrowed.
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
                scope.start_all_reduce(&source, &mut one, first)?;
                scope.start_all_reduce(&source, &mut two, Faulty::new(Fault::None))?;
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

/// A result of a scope whose calls went well is the program's, panics and all.
#[test]
fn a_scope_that_goes_well_returns_what_drops_badly() {
    alone(LIMIT, || {
        pes_of(2).run(|pe| {
            let (mut data, world) = ([pe.world().rank().0; 100], pe.world());
            let kept = world.overlap(|scope| {
                scope.start_broadcast(&mut data, Rank(1))?;
                Ok(Bad(1))
            })?;
            assert_eq!(data, [1; 100]);
            assert!(catch_unwind(AssertUnwindSafe(|| drop(kept))).is_err());
            world.barrier()
        })
    })
    .unwrap();
}

/// How an operator panics, and what is told of it.
const PANICS: [(bool, &str); 2] = [(true, "no sums here"), (false, "no message")];

/// The operator of one call panics on `culprit`, which goes on if `catches`; what PEs then get.
fn an_operator_panics(
    (launch, pes): (Pes, u32),
    culprit: Rank,
    (has_text, text): (bool, &str),
    catches: bool,
    call: impl Fn(Team<'_>, By<'_>) -> Result<()> + std::marker::Sync,
) -> bool {
    let (has_panicked, told) = (AtomicBool::new(false), AtomicUsize::new(0));
    let reason = format!("PE {culprit} failed: it panicked: {text}");
    let since = Instant::now();
    let outcome = launch.run(|pe| {
        let world = pe.world();
        let me = world.rank();
        let add = |a: u64, b: u64| {
            if me == culprit {
                has_panicked.store(true, Relaxed);
                if has_text { panic!("no sums here") } else { panic_any(17_u64) }
            }
            a.wrapping_add(b)
        };
        let made = match catch_unwind(AssertUnwindSafe(|| call(world, By(&add)))) {
            Ok(made) => made,
            Err(panic) if !catches => resume_unwind(panic),
            Err(_) => Ok(()),
        };
        if let Err(Error::Plan(PlanError::Incapable { .. })) = &made {
            return Ok(());
        }
        // Whatever came of that call, the next fails, and so do all others.
        let next = world.barrier();
        if has_panicked.load(Relaxed) {
            for error in [next.clone().err(), world.barrier().err()] {
                assert_eq!(error.map(|error| error.to_string()), Some(reason.clone()));
            }
            if let Err(error) = made {
                assert_eq!(error.to_string(), reason);
            }
            told.fetch_add(1, Relaxed);
        }
        next
    });
    let has_panicked = has_panicked.into_inner();
    if has_panicked {
        assert_eq!(outcome.expect_err("a PE failed").to_string(), reason);
        let others = told.into_inner() - usize::from(catches);
        assert_eq!(others + 1, pes as usize, "some PE was told nothing");
        assert!(since.elapsed() < SOON, "told after {:?}", since.elapsed());
    } else {
        outcome.expect("nothing went wrong");
    }
    has_panicked
}

/// An operator may be a reference to any function.
struct By<'f>(&'f (dyn Fn(u64, u64) -> u64 + std::marker::Sync));

impl Operator<u64> for By<'_> {
    const CLASS: OperatorClass = OperatorClass::Commutative;
    const NAME: &'static str = "any";

    fn apply(&self, left: u64, right: u64) -> u64 {
        self.0(left, right)
    }
}

/// Every algorithm of a collective, each PE in turn.
fn operators_panic_in(collective: Collective, sync: SyncModes) {
    alone(2 * LIMIT, move || {
        for candidate in one_each(collective) {
            let mut panics = 0;
            for pes in [2, 3] {
                for culprit in (0..pes).map(Rank) {
                    for (how, panic) in PANICS.into_iter().enumerate() {
                        let catches = (how + culprit.index()) % 2 == 0;
                        for words in [1, 6, 3000] {
                            note(format!("{candidate}, {words} words, {culprit} of {pes}, {how}"));
                            let launch = pes_of(pes).force(collective, candidate.clone());
                            let call = |world: Team<'_>, add: By<'_>| {
                                let is_root = world.rank() == Rank(1);
                                let source = collective.source_blocks(pes, is_root) as usize;
                                let target = collective.target_blocks(pes, is_root) as usize;
                                let source = vec![1_u64; source * words];
                                let mut target = vec![0; target * words];
                                let (team, root) = (world.with(sync), Rank(1));
                                typed::slices(team, collective, &source, &mut target, add, root)
                            };
                            let panicked =
                                an_operator_panics((launch, pes), culprit, panic, catches, call);
                            panics += u32::from(panicked);
                        }
                    }
                }
            }
            assert!(panics > 0, "{candidate} combines nowhere");
        }
    });
}

macro_rules! operators_panic {
    ($($name:ident: $collective:ident $sync:ident;)*) => {$(
        #[test]
        fn $name() {
            operators_panic_in(Collective::$collective, SyncModes::$sync);
        }
    )*};
}

operators_panic! {
    in_reductions: Reduce MINE;
    in_strict_reductions: Reduce STRICT;
    in_all_reductions: AllReduce MINE;
    in_strict_all_reductions: AllReduce STRICT;
    in_reduce_scatters: ReduceScatter MINE;
    in_scans: Scan MINE;
    in_exclusive_scans: ExclusiveScan MINE;
}

/// The same in nonblocking calls, whoever drives them.
#[test]
fn operators_panic_in_nonblocking_calls() {
    alone(2 * LIMIT, || {
        for candidate in one_each(Collective::AllReduce) {
            for helpers in [false, true] {
                for culprit in (0..3).map(Rank) {
                    note(format!("{candidate}, helpers: {helpers}, PE {culprit}"));
                    let pes = pes_of(3).force(Collective::AllReduce, candidate.clone());
                    let pes = if helpers { pes.helper_threads() } else { pes };
                    let call = |world: Team<'_>, add: By<'_>| {
                        let (source, mut target) = (vec![1; 3000], vec![0; 3000]);
                        let reduced = world.overlap(|scope| {
                            scope.start_all_reduce(&source, &mut target, add)?.wait()
                        });
                        reduced.map(drop)
                    };
                    an_operator_panics((pes, 3), culprit, PANICS[0], true, call);
                }
            }
        }
    });
}

/// A one-sided operation is nobody's but its PE's: so is its panic.
#[test]
fn a_panic_in_a_one_sided_operation_is_its_programs_affair() {
    alone(LIMIT, || {
        pes_of(2).run(|pe| {
            let world = pe.world();
            let memory = world.symmetric::<u64>(3)?;
            memory.store(0, 2)?;
            world.barrier()?;
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let refuse = |_: u64, _: u64| -> u64 { panic!("no sums here") };
                memory.get_combine(world.right(), 0, &mut [1, 1, 1], refuse)
            }));
            assert!(caught.is_err());
            let mut sum = [1];
            memory.get_combine(world.right(), 0, &mut sum, consort::Sum)?;
            assert_eq!(sum, [3]);
            world.barrier()
        })
    })
    .unwrap();
}

/// Runs a program that fails, with and without helpers; nothing but an error comes of it, soon.
fn fails<R: Send + 'static>(
    program: impl Fn(&Pe) -> Result<R> + std::marker::Sync + Copy + Send + 'static,
) {
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

/// The launch drops the result of one PE, since the other has failed.
#[test]
fn a_result_that_drops_badly_beside_a_failure() {
    fails(|pe| {
        if pe.world().rank() == Rank(0) {
            return Ok(Bad(2));
        }
        thread::sleep(Duration::from_millis(20));
        panic!("as planned")
    });
}

/// A PE drops its own result, since its calls have not matched.
#[test]
fn a_result_that_drops_badly_after_a_mismatch() {
    fails(|pe| {
        let world = pe.world().with(SyncModes::LOOSE);
        if world.rank() == Rank(0) {
            thread::sleep(Duration::from_millis(20));
            return Ok(Bad(2));
        }
        let data = world.symmetric::<u64>(1)?;
        world.broadcast_symmetric(&data, Rank(1))?;
        Ok(Bad(0))
    });
}

/// A PE drops its own result, since a call of its own that it has left behind has failed.
#[test]
fn a_result_that_drops_badly_after_its_calls() {
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
fn a_payload_that_drops_badly() {
    fails(|pe| -> Result<()> {
        if pe.world().rank() == Rank(0) {
            panic_any(Bad(3));
        }
        pe.world().barrier()
    });
}

/// The operator of a nonblocking call panics, on a helper's thread where there is one.
#[test]
fn an_operators_payload_that_drops_badly() {
    fails(|pe| {
        let world = pe.world();
        let fault = if world.rank() == Rank(0) { Fault::BadPayload } else { Fault::None };
        let request = world.start_all_reduce(vec![1; 10], Faulty::new(fault))?;
        thread::sleep(Duration::from_millis(20));
        request.wait()?;
        world.barrier()
    });
}

/// Operators of calls under way, in a job that has failed.
#[test]
fn operators_that_drop_badly_at_the_end() {
    fails(|pe| -> Result<()> {
        let world = pe.world();
        if world.rank() == Rank(1) {
            thread::sleep(Duration::from_millis(20));
            panic!("as planned");
        }
        for _ in 0..3 {
            drop(world.start_all_reduce(vec![1; 10], Faulty::new(Fault::BadDrop))?);
        }
        world.barrier()
    });
}

/// What the program of a PE does with the panic of its handler.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Dies,
    GoesOn,
    Ends,
}

/// A handler that panics in the call that closes its asynchronous broadcasts takes the job along,
/// and so does a panic that drops them, once the program is seen to have caught it.
#[test]
fn a_handler_that_panics() {
    for then in [Then::Dies, Then::GoesOn, Then::Ends] {
        for closes in [false, true] {
            let outcome = alone(LIMIT / 6, move || {
                pes_of(3).run(|pe| {
                    let world = pe.world();
                    let caught = catch_unwind(AssertUnwindSafe(|| {
                        let is_last = world.rank() == Rank(2);
                        let mut broadcasts = world.async_broadcasts(|_, _| {
                            assert!(!is_last, "not heard");
                        })?;
                        if world.rank() == Rank(0) {
                            broadcasts.broadcast(b"hear")?;
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
                if own_words { "it panicked: not heard" } else { "it caught a panic that dropped" };
            assert!(text.contains(&format!("PE 2 failed: {reason}")), "{text}");
        }
    }
}

/// Whoever catches the panic of a handler, and still has its asynchronous broadcasts, has lost one
/// message.
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
    assert_eq!(received.unwrap()[1].1, [0, 1, 2]);
}
