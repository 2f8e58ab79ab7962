//! All-reduce: everyone's data combined, on everyone. The registry of its algorithms.
//!
//! `flat` and `recursive_doubling` exchange whole messages, `rabenseifner` and `ring` parts of
//! them; `direct` and `shared` work in the callers' buffers; the others are compositions. An
//! operator need only be associative: all but `ring`, which then refuses, combine in the order of
//! the ranks.

use consort_fabric::{Collective, Query};

use crate::algorithm::registry;

registry! {
    direct: Direct,
    flat: Flat,
    knomial: Chain Knomial,
    oc_bcast: OcBcast,
    rabenseifner: Rabenseifner,
    recursive_doubling: RecursiveDoubling,
    reduce_scatter_all_gather: ReduceScatterAllGather,
    ring: Ring,
    shared: Shared,
}

/// What a reduction and a broadcast are asked for, by a query about both.
fn reduce_and_broadcast(query: &Query) -> (Query, Query) {
    let part = |collective| Query { collective, ..*query };
    (part(Collective::Reduce), part(Collective::Broadcast))
}
