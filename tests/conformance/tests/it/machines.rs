//! Every algorithm on machine models, and identical runs from the same seed.
//!
//! The SCC sends two-sidedly and synchronously: a send lasts until its receiver has taken the
//! message, so an algorithm whose PEs all send before they receive would never end there.

use std::collections::BTreeSet;

use consort_conformance::{Case, Program, Space};
use consort_sandbox::seeds;
use consort_sim::{
    Simulation,
    machines::{Kind, Machine, Placement},
};

use crate::simulated::{listed, simulate};

static SIZES: [usize; 4] = [0, 8, 57, 20_001];
/// The number of calls of a program.
const CALLS: usize = 24;

fn on(name: &str, pes: u32) -> Simulation {
    Simulation::on(Machine::find(name).expect("it is shipped"), pes)
}

/// Returns cases that a machine can serve, spread over all cases.
fn some(simulation: &Simulation, pes: u32, first: usize, count: usize) -> Vec<Case> {
    let capabilities = simulation.capabilities().expect("it has these PEs");
    let is_served = |case: &Case| case.is_served(pes, capabilities);
    Space::of(pes, &SIZES).from(first).filter(is_served).take(count).collect()
}

fn algorithm(case: &Case) -> String {
    format!("{} {}", case.kind.collective, case.kind.algorithm())
}

/// Runs today's part of this number of programs, then one with the algorithms that they leave out.
fn play_on(simulation: &Simulation, pes: u32, programs: usize) {
    let capabilities = simulation.capabilities().expect("it has these PEs");
    let mut played = BTreeSet::new();
    let play = |number: usize, cases: &[Case]| {
        let program = Program::new(pes, number as u64, cases);
        if let Err(error) = simulate(simulation, &program) {
            panic!("{pes} PEs of {simulation:?}: {error}, in{}", listed(&program));
        }
    };
    for number in seeds::some_of(0..programs) {
        let cases = some(simulation, pes, number * CALLS, CALLS);
        played.extend(cases.iter().map(algorithm));
        play(number, &cases);
    }
    let is_new = |case: &Case| {
        let name = algorithm(case);
        !played.contains(&name) && case.is_served(pes, capabilities) && played.insert(name)
    };
    let left_out: Vec<Case> = Space::of(pes, &SIZES).in_few_modes().filter(is_new).collect();
    play(programs, &left_out);
}

#[test]
fn scc_programs_are_right_on_few_cores() {
    for pes in [1, 2, 7] {
        play_on(&on("scc", pes), pes, 60);
    }
}

#[test]
fn scc_programs_are_right_on_all_cores() {
    play_on(&on("scc", 48), 48, 20);
}

/// Nodes have 16 PEs: the larger teams are on several nodes, with equal numbers of PEs or not.
#[test]
fn cluster_programs_are_right() {
    for (pes, programs) in [(2, 60), (17, 60), (32, 20), (70, 20)] {
        play_on(&on("cluster", pes), pes, programs);
    }
}

/// Cores with coherent caches, which underlie the figures of multicores.
#[test]
fn coherent_machine_programs_are_right() {
    for (name, pes, programs) in
        [("clovertown-x2", 8, 40), ("barcelona-x8", 32, 10), ("niagara2-x4", 17, 20)]
    {
        play_on(&on(name, pes), pes, programs);
    }
}

/// All PEs of a few nodes, to which they are dealt in turn.
#[test]
fn in_turn_cluster_programs_are_right() {
    for (nodes, programs) in [(2, 20), (3, 20)] {
        let mut machine = Machine::find("cluster").expect("it is shipped");
        if let Kind::Cluster(cluster) = &mut machine.kind {
            (cluster.nodes, cluster.pes_per_node) = (nodes, 4);
            cluster.placement = Placement::InTurn;
        }
        play_on(&Simulation::on(machine, 4 * nodes), 4 * nodes, programs);
    }
}

#[test]
fn scc_refuses_listed_algorithms() {
    let scc = on("scc", 48);
    let capabilities = scc.capabilities().expect("it has these PEs");
    let mut refused = BTreeSet::new();
    let mut served = BTreeSet::new();
    for case in Space::of(48, &SIZES).in_few_modes() {
        let which = case.is_served(48, capabilities);
        if which { &mut served } else { &mut refused }.insert(algorithm(&case));
    }
    // All its PEs are on one node, and it provides no collectives.
    let is_here = |name: &&str| !name.ends_with(" two_level") && !name.ends_with(" vendor");
    let never = refused.difference(&served).map(String::as_str).filter(is_here);
    let exposing = [
        " barrier_get",
        " direct",
        " shared",
        " knomial_put",
        " knomial_rendezvous",
        " two_phase_bruck",
    ];
    let exposes = |name: &&str| exposing.iter().any(|one| name.ends_with(one));
    let (exposing, sending): (Vec<_>, Vec<_>) = never.partition(exposes);
    assert!(!exposing.is_empty(), "what exposes cannot work where nothing can be exposed");
    // Algorithms that first send to all, need a power of two, or have parts that expose.
    assert_eq!(
        sending,
        [
            "all_gather recursive_doubling",
            "all_reduce flat",
            "all_to_all flat",
            "reduce_scatter flat",
            "reduce_scatter recursive_halving",
        ]
    );
}

/// Returns the trace of some calls, as it is written to a file.
fn trace(simulation: &Simulation, pes: u32, seed: u64) -> Vec<u8> {
    let cases = some(simulation, pes, 500, CALLS);
    let program = Program::new(pes, seed, &cases);
    let outcome = simulate(&simulation.clone().traced(), &program).expect("it ends");
    let mut text = Vec::new();
    outcome.trace.write(&mut text).expect("memory can be written");
    assert!(outcome.trace.steps().len() > 100);
    text
}

#[test]
fn seed_determines_trace() {
    for simulation in [Simulation::explored(7), on("scc", 7)] {
        let one = trace(&simulation, 7, 1);
        assert!(one == trace(&simulation, 7, 1), "the same seed, the same trace");
        assert!(one != trace(&simulation, 7, 2), "another seed, another trace");
    }
}
