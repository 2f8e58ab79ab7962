//! If a program's algorithm waits for more than it sends, its call returns an error and does not
//! hang. Calls wait for PEs that compute or arrive late.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use consort::{
    Error, JobBuilder, Rank, Result, Team,
    bindings::JobBuilderExt as _,
    error::Failure,
    ops::Sum,
    tune::{Candidate, Collective, Query, register},
};
use consort_collectives::{Algorithm, Parameter, PlanError, Setting};
use consort_conformance::turns::alone;
use consort_fabric::{Channel, MachineModel, Messages, Nodes, Op, Span};

use crate::jobs::{SOON, pes_of};

const PES: usize = 3;

/// The number of elements of the only scans that it serves, so that no other test uses it.
const LEN: usize = 13;

/// Much longer than the detection of a deadlock takes.
const LONG: Duration = Duration::from_millis(400);

/// The faults of the algorithm, as values of its parameter: no PE sends.
const NOBODY_SENDS: u64 = 0;
/// PE 0 sends one message and leaves; PE 1 awaits two.
const ONE_TOO_FEW: u64 = 1;
/// PE 0 exchanges words with PE 1, which does not take part.
const NO_EXCHANGE: u64 = 2;
/// No fault, but PE 0 is slow.
const SLOW: u64 = 3;

/// A scan that leaves its targets unchanged.
struct Starving;

impl Algorithm for Starving {
    const NAME: &'static str = "starving";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "fault", values: &[0], range: (0, 3) }];
    const REVISION: u32 = 1;
    type Schedule = (Rank, u64);

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<(Rank, u64), PlanError> {
        Self::check(candidate)?;
        if setting.call.bytes != LEN * 8 {
            return Err(Self::incapable("it is for one size alone"));
        }
        Ok((setting.rank, candidate.parameter("fault").unwrap_or(0)))
    }

    fn cost_ns(_: &Query, _: &Candidate, _: &MachineModel) -> f64 {
        f64::INFINITY
    }

    async fn run<F: Messages>(f: &F, &(rank, fault): &(Rank, u64)) -> Op {
        let (word, channel) = (Span::source(0, 8), Channel::new(5));
        match (fault, rank.0) {
            (NOBODY_SENDS, _) => f.wait(channel, 0).await,
            (ONE_TOO_FEW | SLOW, 0) => {
                if fault == SLOW {
                    thread::sleep(LONG);
                }
                f.send(Rank(1), channel, 0, word).await
            }
            (SLOW, 1) => f.receive(channel, 0, Span::target(0, 8)).await,
            (ONE_TOO_FEW, 1) => {
                f.receive(channel, 0, Span::target(0, 8)).await?;
                f.receive(Channel::new(6), 1, Span::target(0, 8)).await
            }
            (NO_EXCHANGE, 0) => {
                f.pairwise_exchange(Rank(1), channel, 0, Some(word), Some(Span::target(0, 8))).await
            }
            _ => Ok(()),
        }
    }
}

fn starving(fault: u64) -> Candidate {
    Candidate::new("starving").with("fault", fault)
}

/// Returns threads that share memory, and threads on two or three nodes.
fn every() -> [JobBuilder; 3] {
    let on_nodes = |pes| pes_of(PES).loopback([Nodes::Blocks(pes); 2], 7);
    [pes_of(PES), on_nodes(2), on_nodes(1)]
}

fn scan(world: &Team) -> Result<()> {
    world.slices(&[1_u64; LEN], &mut [0; LEN]).scan(Sum)
}

/// Returns the failure of a job in which this algorithm serves scans, and its text.
fn fails(
    pes: JobBuilder,
    fault: u64,
    program: impl Fn(&Team) -> Result<()> + Send + Sync + 'static,
) -> (Failure, String) {
    register::<Starving>(Collective::Scan);
    let pes = pes.force(Collective::Scan, starving(fault));
    let outcome = alone(3 * SOON, move || pes.run(|pe| program(pe.world())));
    let error = outcome.expect_err("a PE waits in vain");
    let text = error.to_string();
    let Error::Mismatched(failure) = error else { panic!("{error:?}") };
    (failure, text)
}

#[test]
fn algorithm_awaiting_an_unsent_message_fails_the_job() {
    for pes in every() {
        let (failure, text) = fails(pes, NOBODY_SENDS, scan);
        assert!(matches!(failure, Failure::Starved { .. }), "{text}");
        assert!(text.contains("by starving(fault=0) (") && text.contains("Starving)"), "{text}");
        assert!(text.contains("a message or a signal on channel 5"), "{text}");
        assert!(text.contains("starving.rs:"), "the place of the call: {text}");
    }
}

#[test]
fn nonblocking_algorithm_awaiting_an_unsent_message_fails_the_job() {
    for pes in every() {
        let (failure, text) = fails(pes, NOBODY_SENDS, |world| {
            world.start(vec![1_u64; LEN]).scan(Sum)?.wait().map(drop)
        });
        assert!(matches!(failure, Failure::Starved { .. }), "{text}");
        assert!(text.contains("start scan(") && text.contains("by starving(fault=0)"), "{text}");
    }
}

/// The PEs for which the call is complete wait in the next one.
#[test]
fn pe_that_is_left_in_a_call_by_the_others_is_named() {
    for fault in [ONE_TOO_FEW, NO_EXCHANGE] {
        let waiting = Rank(u32::from(fault == ONE_TOO_FEW));
        for pes in every() {
            let (failure, text) = fails(pes, fault, |world| {
                scan(world)?;
                world.barrier()
            });
            let Failure::Starved { waiting: named, awaited, .. } = failure else {
                panic!("{text}");
            };
            assert_eq!(named, waiting, "{text}");
            let expected = if fault == ONE_TOO_FEW { "channel 6" } else { "the part of PE 1" };
            assert!(awaited.contains(expected), "{text}");
        }
    }
}

#[test]
fn algorithm_that_waits_after_the_others_have_ended_is_named() {
    let started = |world: &Team| world.start(vec![1_u64; LEN]).scan(Sum)?.wait().map(drop);
    for pes in every() {
        for (is_blocking, awaited) in [(true, "channel 6"), (false, "a message of the call")] {
            let (failure, text) = fails(pes.clone(), ONE_TOO_FEW, move |world| {
                if is_blocking { scan(world) } else { started(world) }
            });
            assert!(matches!(failure, Failure::Starved { waiting: Rank(1), .. }), "{text}");
            for part in ["by starving(fault=1) (", awaited, "starving.rs:"] {
                assert!(text.contains(part), "`{part}` in {text}");
            }
        }
    }
}

#[test]
fn blocking_algorithm_fails_a_job_with_helpers() {
    let (failure, text) = fails(pes_of(PES).helper_threads(), ONE_TOO_FEW, |world| {
        let sum = world.start(vec![1]).all_reduce(Sum)?;
        scan(world)?;
        sum.wait().map(drop)?;
        world.barrier()
    });
    assert!(matches!(failure, Failure::Starved { waiting: Rank(1), .. }), "{text}");
}

/// The algorithm starves in a smaller team, while the other PE is in a call of the world.
#[test]
fn algorithm_starves_in_a_team() {
    for pes in every() {
        let (failure, text) = fails(pes, NOBODY_SENDS, |world| {
            if let Some(pair) = world.strided(Rank(1), 1, 2)? {
                scan(&pair)?;
            }
            world.barrier()
        });
        assert!(matches!(failure, Failure::Starved { .. }), "{text}");
        assert!(text.contains("in the team of PEs 1, 2"), "{text}");
    }
}

#[test]
fn pe_that_computes_in_its_algorithm_or_is_late_is_waited_for() {
    register::<Starving>(Collective::Scan);
    let operator_sleeps = |a: u64, b: u64| {
        static APPLIED: AtomicU64 = AtomicU64::new(0);
        if APPLIED.fetch_add(1, Relaxed).is_multiple_of(4) {
            thread::sleep(LONG);
        }
        a + b
    };
    for pes in every() {
        let pes = pes.force(Collective::Scan, starving(SLOW));
        let outcome = alone(20 * LONG, move || {
            pes.run(|pe| {
                let world = pe.world();
                scan(world)?;
                world.start(vec![1_u64; LEN]).scan(Sum)?.wait()?;
                if world.rank() == Rank(2) {
                    thread::sleep(LONG);
                }
                world.all_reduce(1_u64, operator_sleeps)?;
                world.barrier()
            })
        });
        outcome.expect("nobody waits in vain");
    }
}
