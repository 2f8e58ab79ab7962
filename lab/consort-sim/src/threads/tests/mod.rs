//! Tests each mechanism alone, against the numbers of the machine's description.

mod ahead;
mod memory;
mod messages;
mod waiting;

use super::{SimulatedThread, ThreadSimulation, ThreadsOutcome};
use crate::machines::{Coherent, Kind, Machine as Description};

const TILE: &str = "tile-gx36";
const XEON: &str = "xeon-e7-8867l-x8";
const OPTERON: &str = "opteron-6176-x4";
const MACHINES: [&str; 3] = [TILE, XEON, OPTERON];

fn coherent(name: &str) -> Coherent {
    match Description::find(name).unwrap().kind {
        Kind::Coherent(machine) => machine,
        kind => panic!("{name} is {}", kind.name()),
    }
}

/// Returns the time of `count` cycles of a machine.
fn cycles(name: &str, count: f64) -> f64 {
    count / coherent(name).ghz
}

/// Runs a program on threads at these hardware threads.
fn run<R>(
    name: &str,
    placement: &[u32],
    program: impl AsyncFn(SimulatedThread) -> R,
) -> ThreadsOutcome<R> {
    run_with(name, &[], placement, program)
}

/// Runs a program on a machine with other values of some parameters.
fn run_with<R>(
    name: &str,
    changes: &[(&str, &str)],
    placement: &[u32],
    program: impl AsyncFn(SimulatedThread) -> R,
) -> ThreadsOutcome<R> {
    let machine = Description::changed(name, changes).unwrap();
    let simulation = ThreadSimulation::on(machine, 0).placed(placement.to_vec());
    simulation.run(program).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the time that an operation takes, in nanoseconds.
async fn timed(thread: &SimulatedThread, operation: impl Future) -> f64 {
    let begin = thread.clock();
    operation.await;
    (thread.clock() - begin) as f64 / 1e3
}

#[track_caller]
fn near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 0.1, "{what}: {found} ns, not {expected}");
}

/// Waits until a given time. Programs use it to let threads take turns.
async fn at(thread: &SimulatedThread, us: u64) {
    thread.world.engine.reach(us * 1_000_000).await;
}
