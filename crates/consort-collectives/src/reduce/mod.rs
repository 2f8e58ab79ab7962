//! Reductions: every PE's data combined, on the root. The registry of their algorithms.
//!
//! `flat`, `knomial`, `chain` and `pipelined` send chunks up a tree and differ in its shape (file
//! `knomial`);
//! `knomial_get` combines from message buffers, up a tree; `direct` and `shared` combine from the
//! callers' buffers. An operator need only be associative: if it is not commutative, all algorithms
//! combine in the order of the ranks, or refuse.

use crate::{Vendor, algorithm::registry};

pub(crate) use direct::combine_in_order;

registry! {
    direct: Direct,
    knomial: Chain Flat Knomial Pipelined,
    knomial_get: KnomialGet,
    shared: Shared;
    use Vendor;
    Any;
    two_level: TwoLevel,
}
