//! A user-defined algorithm, which is not in the library's registry: forced, registered, and under
//! random schedules.

use std::mem::ManuallyDrop;

use consort_collectives::{Algorithm, Parameter, PlanError, Setting};
use consort_fabric::{Candidate, MachineModel, Op, Query, Rank, Rendezvous, Rma, Span};

#[path = "../../../../crates/consort-cli/examples/own_algorithm/line.rs"]
mod line;

use line::Line;

/// On threads: when two PEs of three use different algorithms, all get an error.
#[test]
fn outside_algorithm_serves_a_team() {
    use consort::{Error, Job, ops::Sum, tune::Collective};

    let sums = Job::threads(3).run(|pe| {
        let world = pe.world();
        world.algorithms().force_with::<Line>(Collective::AllReduce, Candidate::new("line"));
        let sum = world.all_reduce(world.rank().0 + 1, Sum)?;
        assert_eq!(
            world.algorithms().served_by(Collective::AllReduce),
            Some(Candidate::new("line"))
        );
        Ok(sum)
    });
    assert!(sums.expect("all agree").iter().all(|&sum| sum == 6));
    let differ = Job::threads(3).run(|pe| {
        let world = pe.world();
        if world.rank() == Rank(1) {
            world.algorithms().force_with::<Line>(Collective::AllReduce, Candidate::new("line"));
        }
        world.all_reduce(1_u32, Sum)
    });
    let Err(error @ Error::Mismatched { .. }) = differ else { panic!("{differ:?}") };
    assert!(error.to_string().contains("line ("), "{error}");
}

/// A helper thread may not drive its future, which need not be `Send`.
#[test]
fn helpers_do_not_drive_it() {
    use consort::{Error, Job, error::CallError, ops::Sum, tune::Collective};

    for has_helpers in [false, true] {
        let job = Job::threads(2);
        let job = if has_helpers { job.helper_threads() } else { job };
        let sums = job.run(|pe| {
            let world = pe.world();
            world.algorithms().force_with::<Line>(Collective::AllReduce, Candidate::new("line"));
            assert_eq!(world.all_reduce(1, Sum)?, 2);
            world.start(vec![1]).all_reduce(Sum)?.wait()
        });
        match sums {
            Ok(sums) => assert!(!has_helpers && sums.iter().all(|sum| *sum == [2])),
            Err(error) => {
                assert!(has_helpers && matches!(error, Error::Call(CallError::Plan(_))), "{error}");
                assert!(error.to_string().contains("helper"), "{error}");
            }
        }
    }
}

/// The mistakes of [`Careless`].
mod mistake {
    /// A barrier that does not wait.
    pub(super) const WAITS_FOR_NONE: u8 = 0;
    /// A barrier that exposes the heap to a peer that does not attach it.
    pub(super) const LEAVES_EXPOSED: u8 = 1;
    /// A broadcast whose root puts its data and forgets the future.
    pub(super) const FORGETS_PUT: u8 = 2;
    /// A broadcast whose other PE gets the data and forgets the future.
    pub(super) const FORGETS_GET: u8 = 3;
}

/// Long enough to be moved from memory to memory.
const LONG: usize = 32 << 10;

/// An algorithm with a mistake.
struct Careless<const MISTAKE: u8>;

impl<const MISTAKE: u8> Algorithm for Careless<MISTAKE> {
    const NAME: &'static str = "careless";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = ();

    fn schedule(_: &Setting, candidate: &Candidate) -> Result<(), PlanError> {
        Self::check(candidate)
    }

    fn cost_ns(_: &Query, _: &Candidate, _: &MachineModel) -> f64 {
        0.0
    }

    async fn run<F: Rma + Rendezvous>(f: &F, (): &()) -> Op {
        let peer = Rank(f.rank().0 ^ 1);
        match (MISTAKE, f.rank()) {
            (mistake::LEAVES_EXPOSED, Rank(0)) => f.expose(peer, 0, Span::heap(0, 8)).await?,
            (mistake::FORGETS_PUT, Rank(0)) => {
                let memory = f.reach(peer, Span::heap(0, LONG));
                let _ = ManuallyDrop::new(f.put(&memory, 0, Span::source(0, LONG)));
            }
            (mistake::FORGETS_GET, Rank(1)) => {
                let memory = f.reach(peer, Span::heap(0, LONG));
                let _ = ManuallyDrop::new(f.get(&memory, 0, Span::target(0, LONG)));
            }
            _ => {}
        }
        Ok(())
    }
}

/// The memory of a call is reused 64 calls later, so PEs must stay that close.
#[test]
fn pes_stay_together_under_a_nonwaiting_barrier() {
    use std::{
        sync::atomic::{AtomicU32, Ordering::SeqCst},
        thread::sleep,
        time::Duration,
    };

    use consort::{Job, tune::Collective};

    let left = AtomicU32::new(0);
    let run = Job::threads(2).run(|pe| {
        let world = pe.world();
        world.algorithms().force_with::<Careless<{ mistake::WAITS_FOR_NONE }>>(
            Collective::Barrier,
            Candidate::new("careless"),
        );
        if world.rank() == Rank(1) {
            sleep(Duration::from_millis(50));
            assert!(left.load(SeqCst) <= 64);
        }
        for _ in 0..200 {
            world.barrier()?;
            left.fetch_add(u32::from(world.rank() == Rank(0)), SeqCst);
        }
        Ok(())
    });
    assert!(run.is_ok(), "{run:?}");
}

/// Members that disagree on the size of a team would find each other's messages where they look for
/// addresses.
#[test]
fn outside_barrier_makes_no_team() {
    use consort::{Error, Job, tune::Collective};

    let made = Job::threads(3).run(|pe| {
        let world = pe.world();
        world.algorithms().force_with::<Careless<{ mistake::WAITS_FOR_NONE }>>(
            Collective::Barrier,
            Candidate::new("careless"),
        );
        let members = [Rank(0), Rank(1), Rank(2)];
        let members = if world.rank() == Rank(1) { &members[..2] } else { &members };
        world.subset(members).map(|team| team.map(|team| team.size()))
    });
    assert!(matches!(made, Err(Error::Mismatched(_))), "{made:?}");
}

#[test]
fn symmetric_memory_that_stays_exposed_is_reported() {
    use consort::{Error, Job, tune::Collective};

    let failed = Job::threads(2).run(|pe| {
        let world = pe.world();
        world.algorithms().force_with::<Careless<{ mistake::LEAVES_EXPOSED }>>(
            Collective::Barrier,
            Candidate::new("careless"),
        );
        world.barrier()?;
        world.barrier()
    });
    let Err(Error::PeFailed { rank: Rank(0), reason }) = failed else { panic!("{failed:?}") };
    assert_eq!(reason, "left a call while its buffers were exposed");
}

/// The data of a call is the program's again when the call returns.
#[test]
fn forgotten_transfers_are_reported() {
    use consort::{Error, Job, JobBuilder, bindings::JobBuilderExt as _, tune::Collective};
    use consort_fabric::Nodes;

    fn failed<const MISTAKE: u8>(pes: JobBuilder) -> Error {
        let ended = pes.run(|pe| {
            let world = pe.world();
            let candidate = Candidate::new("careless");
            world.algorithms().force_with::<Careless<MISTAKE>>(Collective::Broadcast, candidate);
            world.in_place(&mut vec![7_u8; LONG]).broadcast(Rank(0))?;
            world.barrier()
        });
        ended.expect_err("a future was forgotten")
    }
    let pes = || Job::threads(2).loopback([Nodes::Blocks(1); 2], 1);
    let put = failed::<{ mistake::FORGETS_PUT }>(pes());
    let get = failed::<{ mistake::FORGETS_GET }>(pes());
    for (error, culprit) in [(put, 0), (get, 1)] {
        let Error::PeFailed { rank, reason } = error else { panic!("{error:?}") };
        assert_eq!(rank, Rank(culprit));
        assert_eq!(reason, "its algorithm forgot a put or a get that had not ended");
    }
}

/// Under random schedules: all its cases, in all modes, at all sizes and roots.
#[test]
fn outside_algorithm_passes_the_suite() {
    use consort_conformance::{Case, Program, Space, cases::SIZES};
    use consort_fabric::Collective;
    use consort_sim::Simulation;

    use crate::simulated::{listed, simulate_by};

    for (pes, seed) in [1, 2, 3, 4, 7, 16].into_iter().zip(0..) {
        let simulation = Simulation::explored(pes);
        let capabilities = simulation.capabilities().expect("any number of PEs");
        let is_served = |case: &Case| {
            let setting = Setting::of(case.call(pes), capabilities);
            Line::schedule(&setting, &Candidate::new("line")).is_ok()
        };
        let space = Space::of_algorithm::<Line>(Collective::AllReduce, pes, &SIZES);
        let cases: Vec<Case> = space.from(0).filter(is_served).take(300).collect();
        for (cases, number) in cases.chunks(24).zip(0..) {
            let program = Program::new(pes, seed << 8 | number, cases);
            let played = simulate_by(&simulation, &program, |case| {
                let candidate = case.kind.candidate.as_ref().expect("every case names one");
                let call = case.call(pes);
                if case.kind.collective == Collective::AllReduce {
                    return simulation.plan_with::<Line>(&call, candidate, &case.barrier);
                }
                simulation.plan(&call, candidate, &case.barrier)
            });
            played.unwrap_or_else(|error| panic!("{error}, in{}", listed(&program)));
        }
    }
}
