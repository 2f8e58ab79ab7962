//! Every algorithm with every parameter, with several calls in flight.

use consort::{
    Error, Rank,
    error::{CallError, PlanError},
    tune::Collective,
};
use consort_conformance::{
    registry::everything,
    turns::{LIMIT, alone, note},
};

use super::{check, start};
use crate::{data::Call, jobs::pes_of};

/// Tests every algorithm with every parameter, with several calls in flight.
fn every_algorithm(pes: usize, collective: Collective) {
    alone(LIMIT, move || {
        for candidate in everything(collective) {
            note(format!("{candidate} among {pes}"));
            let outcome = pes_of(pes).force(collective, candidate.clone()).run(|pe| {
                let world = pe.world();
                let me = world.rank();
                let root = Rank::new(pes - 1);
                for (seed, len) in (0..).zip([1, 0, 9, 700, 3000]) {
                    let calls =
                        [seed, seed + 100].map(|seed| Call { collective, pes, root, len, seed });
                    let requests = match calls.each_ref().map(|call| start(world, call)) {
                        [
                            Err(Error::Call(CallError::Plan(PlanError::Incapable { .. }))),
                            Err(_),
                        ] => continue,
                        [one, other] => [one?, other?],
                    };
                    let [one, other] = requests;
                    check(&calls[1], me, other.wait()?);
                    check(&calls[0], me, one.wait()?);
                }
                Ok(())
            });
            outcome.unwrap_or_else(|error| panic!("{candidate} among {pes}: {error}"));
        }
    });
}

macro_rules! every_algorithm_of {
    ($($name:ident: $collective:ident;)*) => {$(
        #[test]
        fn $name() {
            for pes in [1, 2, 5] {
                every_algorithm(pes, Collective::$collective);
            }
        }
    )*};
}

every_algorithm_of! {
    barriers: Barrier;
    broadcasts: Broadcast;
    scatters: Scatter;
    gathers: Gather;
    all_gathers: AllGather;
    exchanges: AllToAll;
    reductions: Reduce;
    all_reductions: AllReduce;
    reduce_scatters: ReduceScatter;
    scans: Scan;
    exclusive_scans: ExclusiveScan;
}
