//! The registry of broadcasts, which copy the root's data to every PE.
//!
//! `flat`, `knomial` and `pipelined` (file `knomial`) send chunks down trees of different shapes.
//! `knomial_put` puts the data directly into the targets. In `knomial_rendezvous`, children get the
//! data from their parents. `scatter_allgather` sends slices down a tree and around a ring.
//! `oc_bcast` gets chunks from message buffer to message buffer. The algorithms in `two_sided` are
//! those of RCCE_comm, with sends that wait for their receivers. `direct` and `shared` copy between
//! the callers' buffers.

use crate::{Vendor, algorithm::registry, barrier_get::BarrierGet};

registry! {
    direct: Direct,
    knomial: Flat Knomial Pipelined,
    knomial_put: KnomialPut,
    knomial_rendezvous: KnomialRendezvous,
    oc_bcast: OcBcast,
    scatter_allgather: ScatterAllgather,
    shared: Shared,
    two_sided: TwoSidedBinomial TwoSidedScatterAllgather;
    use BarrierGet;
    use Vendor;
    Any of Broadcast;
    two_level: TwoLevel,
}
