//! Broadcasts: the root's data, to everyone. The registry of their algorithms.
//!
//! `flat`, `knomial` and `pipelined` send chunks of lines down a tree and differ in its shape
//! (`lines`); `scatter_allgather` sends slices, down a tree and around a ring; `oc_bcast` passes
//! chunks from message buffer to message buffer; `direct` and `shared` copy between the callers'
//! buffers.

use crate::algorithm::registry;

mod lines;

registry! {
    direct: Direct,
    flat: Flat,
    knomial: Knomial,
    oc_bcast: OcBcast,
    pipelined: Pipelined,
    scatter_allgather: ScatterAllgather,
    shared: Shared,
}
