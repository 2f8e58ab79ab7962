//! Programs of all cases, under random schedules.
//!
//! A seed determines everything: the program, and the order of events. Of four programs, two have
//! calls of all kinds. One has no calls that all enter or leave together. One has successive calls
//! from or to one root, which only flow control keeps within a window of calls. A nightly run runs
//! each program once, and a change runs some, different ones each day. `TEST_SEED=N` runs only one.
//!
//! More programs run the cases that these leave out, so that together they run every algorithm at
//! every size, in every mode and so on. Finding those takes a minute, so only nightly runs do it.

use std::{collections::BTreeSet, sync::Mutex, thread};

use consort_collectives::{Algorithm, Vendor};
use consort_conformance::{Case, Coverage, Kind, Program, Space, cases::SIZES};
use consort_fabric::{Candidate, Capabilities, Nodes};
use consort_sandbox::seeds;
use consort_sim::Simulation;

use crate::simulated::{listed, simulate};

const PES: [u32; 18] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64];
/// Runs with fewer PEs also make calls that algorithms cannot serve with many PEs.
const FEW_PES: u32 = 4;
/// The number of random programs.
const PROGRAMS: usize = 18 * 240;
/// More than a window.
const CALLS: usize = 24;
/// The distance between the first cases of two programs.
const APART: usize = 37;
/// So short that no PE acknowledges a chunk.
const SHORT_BYTES: usize = 57;

/// Shows how to run a schedule again when it fails: a test and a seed.
struct Replay(&'static str, u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if thread::panicking() {
            let Self(test, seed) = self;
            eprintln!(
                "TEST_SEED={seed} cargo test -p consort-conformance --test it {test} plays this again"
            );
        }
    }
}

/// Returns sizes for this many PEs: long messages among many take most time and show nothing new.
fn sizes(pes: u32) -> &'static [usize] {
    match pes {
        1..=3 => &SIZES,
        4..=17 => &SIZES[..8],
        _ => &SIZES[..6],
    }
}

/// Sizes, teams and nodes in which every candidate runs in all modes and with all roots.
static FEW_SIZES: [usize; 2] = [8, 4096];
const ALL_MODES: [(u32, Nodes); 4] =
    [(2, Nodes::One), (3, Nodes::One), (6, Nodes::Blocks(2)), (6, Nodes::InTurn(2))];

/// The number of forms of nodes.
const FORMS: usize = 6;

/// Returns a form of nodes, by number.
const fn nodes(number: usize) -> Nodes {
    match number % FORMS {
        0 => Nodes::One,
        1 => Nodes::Blocks(2),
        2 => Nodes::InTurn(2),
        3 => Nodes::Blocks(3),
        4 => Nodes::InTurn(3),
        _ => Nodes::Blocks(8),
    }
}

/// Returns the random program of this number: PEs, nodes and calls.
fn program(number: usize) -> (u32, Nodes, Vec<Case>) {
    let (round, pes) = (number / PES.len(), PES[number % PES.len()]);
    let (space, nodes) = (Space::of(pes, sizes(pes)), nodes(round / 4));
    let capabilities = capabilities(pes, nodes);
    let mut cases = space.from(number * APART).filter(|case| case.is_served(pes, capabilities));
    let overlap = |case: &Case| !case.call(pes).synchronizes();
    let cases = match round % 4 {
        0 | 2 => cases.take(CALLS).collect(),
        // With few PEs, some algorithms serve cases that they cannot serve with many.
        1 if pes < FEW_PES && round % 8 == 5 => {
            let many = |case: &Case| !case.is_served(4 * FEW_PES, capabilities);
            cases.filter(many).take(CALLS).collect()
        }
        1 => cases.filter(overlap).take(CALLS).collect(),
        _ => {
            let is_short = |case: &Case| case.bytes <= SHORT_BYTES && overlap(case);
            let first = cases.find(is_short).expect("there are some");
            let like = |case: &Case| {
                let Kind { collective, .. } = *case.kind;
                is_short(case) && case.root == first.root && collective == first.kind.collective
            };
            // Flow control relies on such a call for a while after it.
            let together = (round % 8 == 3)
                .then(|| cases.find(|case| case.call(pes).synchronizes()))
                .flatten();
            together.into_iter().chain(cases.filter(like)).take(CALLS).collect()
        }
    };
    (pes, nodes, cases)
}

fn capabilities(pes: u32, nodes: Nodes) -> Capabilities {
    Simulation::explored(pes).nodes(nodes).capabilities().expect("any number of PEs")
}

fn explore(test: &'static str, seed: u64, (pes, nodes, cases): (u32, Nodes, &[Case])) {
    let _replay = Replay(test, seed);
    let even = Program::new(pes, seed, cases);
    let program = if seed.is_multiple_of(2) { even } else { even.uneven() };
    if let Err(error) = simulate(&Simulation::explored(pes).nodes(nodes), &program) {
        panic!("{error}, on {nodes:?}, in{}", listed(&program));
    }
}

#[test]
fn every_algorithm_survives_schedules_at_random() {
    let programs = PROGRAMS as u64;
    on_all_cores(seeds::of_programs(programs), |seed| {
        let number = usize::try_from(seed % programs).expect("there are few programs");
        let (pes, nodes, cases) = program(number);
        explore("at_random", seed, (pes, nodes, &cases));
    });
}

/// Runs seeds on as many threads as there are cores.
fn on_all_cores(seeds: impl Iterator<Item = u64> + Send, play: impl Fn(u64) + Sync) {
    let seeds = Mutex::new(seeds);
    let next = || seeds.lock().expect("drawing does not panic").next();
    let worker = || std::iter::from_fn(next).for_each(&play);
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        (0..workers).for_each(|_| drop(scope.spawn(worker)));
    });
}

mod night {
    use super::*;

    #[test]
    fn programs_of_left_out_cases_survive_schedules() {
        let rest = rest();
        assert!(rest.len() < PROGRAMS, "programs at random leave out too much");
        let programs = rest.len() as u64;
        on_all_cores(seeds::of_programs(programs), |seed| {
            let number = usize::try_from(seed % programs).expect("there are few programs");
            let (pes, nodes, cases) = &rest[number];
            explore("left_out", seed, (*pes, *nodes, cases));
        });
    }

    /// Returns whether an algorithm works in exposed buffers, which those of most parts cannot be,
    /// needs more PEs than a part has here, or is the fabric's own, which simulations do not have.
    fn is_never_a_part(one: &Candidate) -> bool {
        let name = one.algorithm.as_str();
        let exposes = matches!(name, "barrier_get" | "direct" | "shared");
        exposes || name == Vendor::NAME || one.parameter("k") == Some(47)
    }

    /// Returns programs of the cases that the random programs leave out: no algorithm, value, mode,
    /// size, root or class is missing. Every candidate runs.
    fn rest() -> Vec<(u32, Nodes, Vec<Case>)> {
        let mut coverage = Coverage::default();
        let (mut programs, mut candidates, mut played) =
            (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for number in 0..PROGRAMS {
            let (pes, _, cases) = program(number);
            assert_eq!(cases.len(), CALLS);
            coverage.note(pes, &cases);
            played.extend(cases.iter().filter_map(|case| case.kind.candidate.clone()));
        }
        let mut add = |(pes, nodes), all: &mut dyn Iterator<Item = Case>| {
            let capabilities = capabilities(pes, nodes);
            let can_be = |case: &Case| case.is_served(pes, capabilities);
            let cases: Vec<Case> =
                all.filter(|case| coverage.note_if_new(pes, case, can_be)).collect();
            played.extend(cases.iter().filter_map(|case| case.kind.candidate.clone()));
            programs.extend(cases.chunks(CALLS).map(|cases| (pes, nodes, cases.to_vec())));
        };
        for (pes, nodes) in ALL_MODES {
            add((pes, nodes), &mut Space::of(pes, &FEW_SIZES).in_all_modes());
        }
        for pes in PES {
            let space = Space::of(pes, sizes(pes));
            candidates.extend(space.candidates().cloned());
            (0..FORMS).for_each(|form| add((pes, nodes(form)), &mut space.in_few_modes()));
        }
        let never: Vec<String> = candidates
            .difference(&played)
            .filter(|one| one.algorithm != Vendor::NAME && !one.parts.iter().any(is_never_a_part))
            .map(Candidate::to_string)
            .collect();
        assert!(never.is_empty(), "some candidates are never served: {never:?}");
        programs
    }
}
