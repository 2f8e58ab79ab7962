//! All-reduce: everyone's data combined, on everyone. The registry of its algorithms.
//!
//! `flat` and `recursive_doubling` exchange whole messages; `direct` and `shared` work in the
//! callers' buffers; the others are compositions: a reduction to PE 0, and a broadcast from there.
//! An operator need only be associative: all combine in the order of the ranks.

use consort_fabric::{Collective, Query};

use crate::algorithm::registry;

registry! {
    chain: Chain,
    direct: Direct,
    flat: Flat,
    knomial: Knomial,
    oc_bcast: OcBcast,
    recursive_doubling: RecursiveDoubling,
    reduce_scatter_all_gather: ReduceScatterAllGather,
    shared: Shared,
}

/// What a reduction and a broadcast are asked for, by a query about both.
fn reduce_and_broadcast(query: &Query) -> (Query, Query) {
    let part = |collective| Query { collective, ..*query };
    (part(Collective::Reduce), part(Collective::Broadcast))
}
