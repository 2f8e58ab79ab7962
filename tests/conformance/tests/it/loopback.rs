//! The suite on PEs that do not all share memory: parts of this process act as processes.
//! The parts of one node map one segment. Frames of packets between nodes are delayed and overtake
//! each other.

use std::time::Duration;

use consort::{Job, bindings::JobBuilderExt as _};
use consort_conformance::turns::alone;
use consort_fabric::Nodes;
use consort_sandbox::seeds;

use crate::public::{play, programs};

/// The time limit of one number of PEs; the suite is faster.
const LIMIT: Duration = Duration::from_secs(240);

/// Runs programs of `count` cases on `pes` PEs, with these placements on processes and on nodes.
fn conform(pes: u32, forms: [Nodes; 2], count: usize) {
    let able = match forms {
        [_, Nodes::One] => consort_native::Job::capabilities_of(pes),
        [_, nodes] => consort_native::Job::capabilities_between(pes, nodes),
    };
    let programs = programs(pes, able, count);
    let seeds = seeds::of_programs(programs.len() as u64);
    let drawn = seeds.clone().count();
    let ended = alone(LIMIT, move || {
        let launch = Job::threads(pes as usize).loopback(forms, pes.into());
        play(launch, &programs, seeds)
            .unwrap_or_else(|error| panic!("{pes} PEs on {forms:?}: {error}"))
    });
    assert_eq!(ended.len(), pes as usize);
    assert!(ended.iter().all(|&played| played == drawn));
}

macro_rules! conforms {
    ($($name:ident: $pes:literal PEs on $forms:expr, $count:literal cases;)*) => {$(
        #[test]
        fn $name() {
            conform($pes, $forms, $count);
        }
    )*};
}

conforms! {
    two: 2 PEs on [Nodes::Blocks(1); 2], 200 cases;
    three: 3 PEs on [Nodes::Blocks(2); 2], 200 cases;
    four: 4 PEs on [Nodes::Blocks(2); 2], 200 cases;
    four_in_turn: 4 PEs on [Nodes::InTurn(2); 2], 200 cases;
    five: 5 PEs on [Nodes::InTurn(3); 2], 100 cases;
    six: 6 PEs on [Nodes::Blocks(2); 2], 100 cases;
    processes_on_two_nodes: 4 PEs on [Nodes::Blocks(1), Nodes::Blocks(2)], 200 cases;
    processes_on_nodes_in_turn: 5 PEs on [Nodes::Blocks(1), Nodes::InTurn(2)], 100 cases;
    threads_in_processes_on_nodes: 6 PEs on [Nodes::Blocks(2), Nodes::Blocks(4)], 100 cases;
    processes_on_one_node: 4 PEs on [Nodes::Blocks(2), Nodes::One], 200 cases;
}
