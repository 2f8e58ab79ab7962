//! Programs whose PEs act as those of several processes, on several nodes.

use consort_conformance::data::Random;
use consort_fabric::Nodes;

use super::program::{Program, Scene, Step};

/// Returns the placement of a program's PEs on processes, and on nodes.
fn forms(seed: u64, pes: u32) -> [Nodes; 2] {
    let mut random = Random(seed);
    let mut number =
        |most: u32| 1 + u32::try_from(random.below(most as usize)).expect("below a u32");
    let (by, times) = (number(pes), number(3));
    match number(5) {
        1 => [Nodes::Blocks(by); 2],
        2 => [Nodes::InTurn(by); 2],
        3 => [Nodes::Blocks(1), Nodes::Blocks(by)],
        4 => [Nodes::Blocks(1), Nodes::InTurn(by)],
        _ => [Nodes::Blocks(by), Nodes::Blocks(by * times)],
    }
}

impl Program {
    /// Returns the program for nodes, on which nobody broadcasts asynchronously.
    pub(super) fn on_nodes(mut self) -> Self {
        for step in &mut self.steps {
            if let Step::Scene { scene, .. } = step
                && *scene == Scene::AsyncBroadcast
            {
                *scene = Scene::Atomics;
            }
        }
        self.forms = Some(forms(self.seed, self.pes));
        self
    }
}
