//! The suite on PEs that share no memory: parts of this process, between which frames of packets
//! are delayed and overtake each other.

use std::time::Duration;

use consort::Pes;
use consort_conformance::turns::alone;
use consort_fabric::Nodes;
use consort_native::Job;

use crate::public::{CALLS, play};

/// What one number of PEs may take; the suite is faster.
const LIMIT: Duration = Duration::from_secs(240);

/// Runs programs of `count` cases on `pes` PEs, which lie on nodes of this form.
fn conform(pes: u32, nodes: Nodes, count: usize) {
    let ended = alone(LIMIT, move || {
        let launch = Pes::threads(pes).loopback(nodes, pes.into());
        let able = Job::capabilities_between(pes, nodes);
        play(launch, pes, able, count)
            .unwrap_or_else(|error| panic!("{pes} PEs on {nodes:?}: {error}"))
    });
    assert_eq!(ended.len(), pes as usize);
    assert!(ended.iter().all(|&(_, programs)| programs >= count / CALLS));
}

macro_rules! conforms {
    ($($name:ident: $pes:literal PEs on $nodes:expr, $count:literal cases;)*) => {$(
        #[test]
        fn $name() {
            conform($pes, $nodes, $count);
        }
    )*};
}

conforms! {
    two: 2 PEs on Nodes::Blocks(1), 200 cases;
    three: 3 PEs on Nodes::Blocks(2), 200 cases;
    four: 4 PEs on Nodes::Blocks(2), 200 cases;
    four_in_turn: 4 PEs on Nodes::InTurn(2), 200 cases;
    five: 5 PEs on Nodes::InTurn(3), 100 cases;
    six: 6 PEs on Nodes::Blocks(2), 100 cases;
}
