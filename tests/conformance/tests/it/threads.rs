//! The suite on threads, by the public interface of `consort`.

use std::time::Duration;

use consort::{
    Error, Job,
    error::{CallError, PlanError},
};
use consort_conformance::{Case, Coverage, Member, Program, Space, data::Random, turns::alone};

use consort_sandbox::seeds;

use crate::public::{Player, Pool, SIZES, keys, play, programs};

/// The time limit of one number of PEs; the suite is much faster.
const LIMIT: Duration = Duration::from_secs(240);

/// The environment variable for the memory that PEs share; the same suite must pass on each kind.
/// The library reads it.
const SEGMENT: &str = "CONSORT_SEGMENT";

/// Runs programs of `count` cases on `pes` PEs.
fn conform(pes: u32, count: usize) {
    let programs = programs(pes, consort_native::Job::capabilities_of(pes), count);
    let seeds = seeds::of_programs(programs.len() as u64);
    let drawn = seeds.clone().count();
    let ended = alone(LIMIT, move || {
        play(Job::threads(pes as usize), &programs, seeds).unwrap_or_else(|error| {
            let segment = std::env::var(SEGMENT).unwrap_or_default();
            panic!("{pes} PEs, {SEGMENT}={segment}: {error}")
        })
    });
    assert_eq!(ended.len(), pes as usize);
    assert!(ended.iter().all(|&played| played == drawn));
}

/// All PEs refuse a case that an algorithm cannot serve, and can continue.
#[test]
fn unservable_call_is_refused_by_all() {
    for pes in [2, 3, 7] {
        alone(LIMIT, move || {
            let space = Space::of(pes, &SIZES);
            let unable = |case: &Case| {
                case.settles()
                    && !case.symmetric
                    && !case.is_served(pes, consort_native::Job::capabilities_of(pes))
            };
            let mut coverage = Coverage::default();
            let is_new = |case: &Case| coverage.note_if_new(pes, case, unable);
            let cases: Vec<Case> = space.in_few_modes().filter(is_new).collect();
            assert!(!cases.is_empty(), "all algorithms serve all calls of {pes} PEs");
            let program = Program::new(pes, 1, &cases);
            let refused = Job::threads(pes as usize).run(|pe| {
                let mut random = Random(0);
                let (world, pool, keys) = (pe.world(), &Pool::new(), &*keys(&program));
                let member = Player { world: world.clone(), pool, keys, random: &mut random };
                for (call, case) in cases.iter().enumerate() {
                    let private = program.private(call, member.rank());
                    match member.forced(call, case, Some(private)) {
                        Err(Error::Call(CallError::Plan(PlanError::Incapable { .. }))) => {}
                        other => panic!("{case}: {other:?}"),
                    }
                }
                world.barrier()
            });
            refused.unwrap_or_else(|error| panic!("{pes} PEs: {error}"));
        });
    }
}

macro_rules! conforms {
    ($($name:ident: $pes:literal PEs, $count:literal cases;)*) => {$(
        #[test]
        fn $name() {
            conform($pes, $count);
        }
    )*};
}

conforms! {
    one: 1 PEs, 50_000 cases;
    two: 2 PEs, 50_000 cases;
    three: 3 PEs, 12_000 cases;
    four: 4 PEs, 12_000 cases;
    five: 5 PEs, 6_000 cases;
    six: 6 PEs, 4_800 cases;
    seven: 7 PEs, 4_800 cases;
    eight: 8 PEs, 4_800 cases;
    nine: 9 PEs, 4_800 cases;
    ten: 10 PEs, 4_800 cases;
    eleven: 11 PEs, 4_800 cases;
    twelve: 12 PEs, 4_800 cases;
    thirteen: 13 PEs, 4_800 cases;
    fourteen: 14 PEs, 4_800 cases;
    fifteen: 15 PEs, 4_800 cases;
    sixteen: 16 PEs, 4_800 cases;
    seventeen: 17 PEs, 4_800 cases;
    sixty_four: 64 PEs, 1_000 cases;
}
