//! The registry of all-reduces, which give every PE the combination of all PEs' data.
//!
//! `flat` and `recursive_doubling` exchange whole messages, `rabenseifner` and `ring` parts of
//! them. `pipelined` sends chunks up a tree, and down again at the same time. `direct` and `shared`
//! work in the callers' buffers. The others are compositions. An operator need only be associative.
//! If it is not commutative, all algorithms combine in rank order, except `ring`, which refuses the
//! call.

use consort_fabric::{Collective, Query};

use crate::{Vendor, algorithm::registry, barrier_get::BarrierGet};

registry! {
    direct: Direct,
    flat: Flat,
    knomial: Chain Knomial,
    oc_bcast: OcBcast,
    pipelined: Pipelined,
    rabenseifner: Rabenseifner,
    recursive_doubling: RecursiveDoubling,
    ring: Ring,
    shared: Shared;
    use BarrierGet;
    use Vendor;
    Any of AllReduce;
    reduce_broadcast: ReduceBroadcast,
    reduce_scatter_all_gather: ReduceScatterAllGather,
    two_level: TwoLevel,
}

/// Returns the queries for the reduction and the broadcast that together answer a query for both.
fn reduce_and_broadcast(query: &Query) -> (Query, Query) {
    let part = |collective| Query { collective, ..*query };
    (part(Collective::Reduce), part(Collective::Broadcast))
}
