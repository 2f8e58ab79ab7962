//! Compositions on several levels, under random schedules.
//!
//! Each program has calls of compositions whose parts are divided again. `TEST_SEED=N` runs only
//! one seed.

use std::collections::BTreeSet;

use consort_conformance::{Case, Program, Space};
use consort_fabric::{Levels, Nodes};
use consort_sandbox::seeds;
use consort_sim::Simulation;

use crate::simulated::{listed, simulate};

static SIZES: [usize; 5] = [0, 8, 57, 1000, 20_000];
const CALLS: usize = 24;
/// The distance between the first cases of two programs.
const APART: usize = 37;
/// The number of random programs.
const PROGRAMS: u64 = 12 * FORMS.len() as u64;

const ONE: Nodes = Nodes::One;

const fn around(around: [Nodes; 3]) -> Levels {
    Levels::around(around)
}

const fn inside(inside: [Nodes; 3]) -> Levels {
    Levels { inside, ..Levels::NONE }
}

/// Teams, their placement on nodes, and the levels besides.
const FORMS: [(u32, Nodes, Levels); 12] = [
    (8, Nodes::Blocks(2), around([Nodes::Blocks(2), ONE, ONE])),
    (12, Nodes::Blocks(2), around([Nodes::Blocks(3), ONE, ONE])),
    (18, Nodes::Blocks(2), around([Nodes::Blocks(3), ONE, ONE])),
    // The last group of nodes and the last node are smaller.
    (11, Nodes::Blocks(2), around([Nodes::Blocks(4), ONE, ONE])),
    (12, Nodes::Blocks(2), around([Nodes::InTurn(2), ONE, ONE])),
    (16, Nodes::Blocks(2), around([Nodes::Blocks(2), Nodes::Blocks(2), ONE])),
    (12, Nodes::Blocks(6), inside([Nodes::Blocks(3), ONE, ONE])),
    (10, Nodes::Blocks(6), inside([Nodes::Blocks(2), ONE, ONE])),
    (12, Nodes::Blocks(6), inside([Nodes::InTurn(3), ONE, ONE])),
    (12, Nodes::InTurn(3), inside([Nodes::Blocks(2), ONE, ONE])),
    (16, Nodes::Blocks(8), inside([Nodes::Blocks(4), Nodes::Blocks(2), ONE])),
    (
        16,
        Nodes::Blocks(4),
        Levels { inside: [Nodes::Blocks(2), ONE, ONE], around: [Nodes::Blocks(2), ONE, ONE] },
    ),
];

/// Returns cases that these PEs can serve, spread over all cases.
fn some(space: &Space, simulation: &Simulation, first: usize) -> Vec<Case> {
    let (pes, capabilities) = (space.pes(), simulation.capabilities().expect("any number of PEs"));
    space.from(first).filter(|case| case.is_served(pes, capabilities)).take(CALLS).collect()
}

#[test]
fn every_depth_survives_schedules_at_random() {
    for seed in seeds::of_programs(PROGRAMS) {
        let number = usize::try_from(seed % PROGRAMS).expect("there are few programs");
        let (pes, nodes, levels) = FORMS[number % FORMS.len()];
        let simulation = Simulation::explored(pes).nodes(nodes).levels(levels);
        let space = Space::on_levels(pes, &SIZES, levels.depths());
        let cases = some(&space, &simulation, number * APART);
        let program = Program::new(pes, seed, &cases);
        if let Err(error) = simulate(&simulation, &program) {
            panic!("seed {seed}: {error}, on {nodes:?} of {levels:?}, in{}", listed(&program));
        }
    }
}

/// No collective is left out, on nodes in blocks of equal size.
#[test]
fn every_collective_is_divided_twice() {
    let (pes, nodes, levels) = FORMS[0];
    let simulation = Simulation::explored(pes).nodes(nodes).levels(levels);
    let capabilities = simulation.capabilities().expect("any number of PEs");
    let space = Space::on_levels(pes, &SIZES, levels.depths());
    let mut collectives = BTreeSet::new();
    let cases: Vec<Case> = space
        .in_few_modes()
        .filter(|case| case.size == 57 || case.size == 0)
        .filter(|case| !case.kind.is_ordered && case.is_served(pes, capabilities))
        .filter(|case| collectives.insert(case.kind.collective))
        .collect();
    assert_eq!(collectives.len(), 9, "{collectives:?}");
    let program = Program::new(pes, 0, &cases);
    if let Err(error) = simulate(&simulation, &program) {
        panic!("{error}, in{}", listed(&program));
    }
}
