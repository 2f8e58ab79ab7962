//! Broadcasts: the root's data, to every PE. The registry of their algorithms.
//!
//! `flat`, `knomial` and `pipelined` send chunks down a tree and differ in its shape (file
//! `knomial`); `knomial_put` puts the data where it belongs, and children of `knomial_rendezvous`
//! get it from their parents; `scatter_allgather` sends slices, down a tree and around a ring;
//! `oc_bcast` gets chunks from message buffer to message buffer; those of `two_sided` are
//! RCCE_comm's, of sends that wait for their receivers; `direct` and `shared` copy between the
//! callers' buffers.

use crate::{Vendor, algorithm::registry};

registry! {
    direct: Direct,
    knomial: Flat Knomial Pipelined,
    knomial_put: KnomialPut,
    knomial_rendezvous: KnomialRendezvous,
    oc_bcast: OcBcast,
    scatter_allgather: ScatterAllgather,
    shared: Shared,
    two_sided: TwoSidedBinomial TwoSidedScatterAllgather;
    use Vendor;
    Any;
    two_level: TwoLevel,
}
