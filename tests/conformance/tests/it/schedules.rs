//! Programs of all cases, under schedules at random.
//!
//! A seed says all: how many PEs, which calls, and what happens when. Of four programs two have
//! calls of all kinds. One has none that all enter or leave together. One has calls in a row from
//! or to one root, which nothing but the flow control keeps within a window of calls. What those
//! leave out comes last: so every algorithm is played at every size, in every mode and so on.
//! `CONSORT_SEED=N` plays one seed alone.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

use consort_conformance::{Case, Coverage, Kind, Program, Space, cases::SIZES, data::only_seed};
use consort_sim::Simulation;

use crate::simulated::{listed, simulate};

const PES: [u32; 18] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64];
/// Fewer are few.
const FEW_PES: u32 = 4;
/// Seeds of programs at random; those after them play what is left out.
const PROGRAMS: u64 = 18 * 240;
/// More than a window.
const CALLS: usize = 24;
/// How far apart the programs begin.
const APART: usize = 37;
/// Such that no PE says that it has taken a chunk.
const SHORT_BYTES: usize = 57;

/// Shows the seed when a schedule fails.
struct Replay(u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("CONSORT_SEED={} plays this schedule again", self.0);
        }
    }
}

/// Sizes for so many PEs: long messages among many take most of the time and show no more.
fn sizes(pes: u32) -> &'static [usize] {
    match pes {
        1..=3 => &SIZES,
        4..=17 => &SIZES[..8],
        _ => &SIZES[..6],
    }
}

/// The program of a seed.
fn program(seed: u64) -> (u32, Vec<Case>) {
    let number = usize::try_from(seed).expect("a seed is small");
    let (round, pes) = (number / PES.len(), PES[number % PES.len()]);
    let space = Space::of(pes, sizes(pes));
    let capabilities = Simulation::explored(pes).capabilities().expect("any number of PEs");
    let mut cases = space.from(number * APART).filter(|case| case.is_served(pes, capabilities));
    let overlap = |case: &Case| !case.call(pes).synchronizes();
    let cases = match round % 4 {
        0 | 2 => cases.take(CALLS).collect(),
        // With few PEs some algorithms serve what they cannot among many.
        1 if pes < FEW_PES && round % 8 == 5 => {
            let many = |case: &Case| !case.is_served(4 * FEW_PES, capabilities);
            cases.filter(many).take(CALLS).collect()
        }
        1 => cases.filter(overlap).take(CALLS).collect(),
        _ => {
            let is_short = |case: &Case| case.bytes <= SHORT_BYTES && overlap(case);
            let first = cases.find(is_short).expect("there are some");
            let like = |case: &Case| {
                let Kind { collective, .. } = case.kind;
                is_short(case) && case.root == first.root && collective == first.kind.collective
            };
            // Flow control counts on such a call, if there was one, for a while.
            let together = (round % 8 == 3)
                .then(|| cases.find(|case| case.call(pes).synchronizes()))
                .flatten();
            together.into_iter().chain(cases.filter(like)).take(CALLS).collect()
        }
    };
    (pes, cases)
}

fn explore(seed: u64, (pes, cases): (u32, &[Case])) {
    let _replay = Replay(seed);
    let program = Program::new(pes, seed, cases);
    if let Err(error) = simulate(&Simulation::explored(pes), &program) {
        panic!("{error}, in{}", listed(&program));
    }
}

#[test]
fn every_algorithm_survives_schedules_at_random() {
    let rest = rest();
    assert!((rest.len() as u64) < PROGRAMS, "programs at random leave out too much");
    let play = |seed: u64| match seed.checked_sub(PROGRAMS) {
        None => {
            let (pes, cases) = program(seed);
            explore(seed, (pes, &cases));
        }
        Some(number) => {
            let (pes, cases) = &rest[usize::try_from(number).expect("a seed is small")];
            explore(seed, (*pes, cases));
        }
    };
    if let Some(seed) = only_seed() {
        return play(seed);
    }
    let (next, end) = (AtomicU64::new(0), PROGRAMS + rest.len() as u64);
    let worker = || {
        let seeds = || Some(next.fetch_add(1, Relaxed)).filter(|&seed| seed < end);
        std::iter::from_fn(seeds).for_each(play);
    };
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        (0..workers).for_each(|_| drop(scope.spawn(worker)));
    });
}

/// Programs of what the programs at random leave out: no algorithm, value, mode, size, root or
/// class is never played. Every candidate is played.
fn rest() -> Vec<(u32, Vec<Case>)> {
    let mut coverage = Coverage::default();
    for seed in 0..PROGRAMS {
        let (pes, cases) = program(seed);
        assert_eq!(cases.len(), CALLS);
        coverage.note(pes, &cases);
    }
    let (mut programs, mut candidates, mut played) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for pes in PES {
        let capabilities = Simulation::explored(pes).capabilities().expect("any number of PEs");
        let mut cases = Vec::new();
        for case in Space::of(pes, sizes(pes)).in_few_modes() {
            candidates.insert(case.kind.candidate.clone());
            if case.is_served(pes, capabilities) {
                played.insert(case.kind.candidate.clone());
                if coverage.is_new(pes, &case) {
                    cases.push(case);
                }
            }
        }
        programs.extend(cases.chunks(CALLS).map(|cases| (pes, cases.to_vec())));
    }
    assert_eq!(candidates, played, "some candidates are never served");
    programs
}
