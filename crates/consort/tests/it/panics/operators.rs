//! Operators that panic, in every algorithm that combines.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    time::Instant,
};

use consort::{
    Error, JobBuilder, Rank, Result, Team,
    error::{CallError, PlanError},
    ops::Operator,
    sync_modes::SyncModes,
    tune::Collective,
};
use consort_conformance::{
    registry::one_each,
    turns::{LIMIT, alone, note},
};
use consort_fabric::OperatorClass;

use crate::{
    data::{source_blocks, target_blocks},
    jobs::{SOON, on, pes_of},
    typed,
};

/// The ways in which an operator panics, and the reported text.
const PANICS: [(bool, &str); 2] = [(true, "no sums here"), (false, "no message")];

/// An operator panics on `culprit`, which continues if it `catches`; checks the PEs' errors.
fn an_operator_panics(
    (launch, pes): (JobBuilder, usize),
    culprit: Rank,
    (has_text, text): (bool, &str),
    catches: bool,
    call: impl Fn(&Team, By<'_>) -> Result<()> + Sync,
) -> bool {
    let (has_panicked, informed) = (AtomicBool::new(false), AtomicUsize::new(0));
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
        if let Err(Error::Call(CallError::Plan(PlanError::Incapable { .. }))) = &made {
            return Ok(());
        }
        // Whatever the result of that call, the next one fails, and so do all others.
        let next = world.barrier();
        if has_panicked.load(Relaxed) {
            for error in [next.clone().err(), world.barrier().err()] {
                assert_eq!(error.map(|error| error.to_string()), Some(reason.clone()));
            }
            if let Err(error) = made {
                assert_eq!(error.to_string(), reason);
            }
            informed.fetch_add(1, Relaxed);
        }
        next
    });
    let has_panicked = has_panicked.into_inner();
    if has_panicked {
        assert_eq!(outcome.expect_err("a PE failed").to_string(), reason);
        let others = informed.into_inner() - usize::from(catches);
        assert_eq!(others + 1, pes, "some PE got no error");
        assert!(since.elapsed() < SOON, "reported after {:?}", since.elapsed());
    } else {
        outcome.expect("nothing went wrong");
    }
    has_panicked
}

/// An operator may be a reference to any function.
struct By<'f>(&'f (dyn Fn(u64, u64) -> u64 + Sync));

impl Operator<u64> for By<'_> {
    const CLASS: OperatorClass = OperatorClass::Commutative;
    const NAME: &'static str = "any";

    fn apply(&self, left: u64, right: u64) -> u64 {
        self.0(left, right)
    }
}

/// Tests every algorithm of a collective, with each PE in turn.
fn operators_panic_in(collective: Collective, sync: SyncModes) {
    alone(2 * LIMIT, move || {
        for candidate in one_each(collective) {
            let mut panics = 0;
            for pes in [2, 3] {
                for culprit in (0..pes).map(Rank::new) {
                    for (how, panic) in PANICS.into_iter().enumerate() {
                        let catches = (how + culprit.index()) % 2 == 0;
                        for words in [1, 6, 3000] {
                            note(format!("{candidate}, {words} words, {culprit} of {pes}, {how}"));
                            let launch = pes_of(pes).force(collective, candidate.clone());
                            let call = |world: &Team, add: By<'_>| {
                                let is_root = world.rank() == Rank(1);
                                let source = source_blocks(collective, pes, is_root);
                                let target = target_blocks(collective, pes, is_root);
                                let source = vec![1_u64; source * words];
                                let mut target = vec![0; target * words];
                                let (team, root) = (world.with_sync(sync), Rank(1));
                                typed::slices(&team, collective, &source, &mut target, add, root)
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

/// The same in nonblocking calls, regardless of the thread that drives them.
#[test]
fn operators_panic_in_nonblocking_calls() {
    alone(2 * LIMIT, || {
        for candidate in one_each(Collective::AllReduce) {
            for helpers in [false, true] {
                for culprit in (0..3).map(Rank) {
                    note(format!("{candidate}, helpers: {helpers}, PE {culprit}"));
                    let pes = pes_of(3).force(Collective::AllReduce, candidate.clone());
                    let pes = if helpers { pes.helper_threads() } else { pes };
                    let call = |world: &Team, add: By<'_>| {
                        let (source, mut target) = (vec![1; 3000], vec![0; 3000]);
                        let reduced = world.overlap(|scope| {
                            scope.start_into(&source, &mut target).all_reduce(add)?.wait().map(drop)
                        });
                        reduced.map(drop)
                    };
                    an_operator_panics((pes, 3), culprit, PANICS[0], true, call);
                }
            }
        }
    });
}

/// A one-sided operation only concerns its PE, and so does its panic.
#[test]
fn caught_panic_in_a_one_sided_operation_is_harmless() {
    on(pes_of(2), |world| {
        let memory = world.symmetric::<u64>(3)?;
        memory.store(0, 2)?;
        world.barrier()?;
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let refuse = |_: u64, _: u64| -> u64 { panic!("no sums here") };
            memory.get_combine(world.right(), 0, &mut [1, 1, 1], refuse)
        }));
        assert!(caught.is_err());
        let mut sum = [1];
        memory.get_combine(world.right(), 0, &mut sum, consort::ops::Sum)?;
        assert_eq!(sum, [3]);
        world.barrier()
    });
}
