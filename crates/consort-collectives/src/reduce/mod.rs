//! Reductions: everyone's data combined, on the root. The registry of their algorithms.
//!
//! `flat`, `knomial` and `chain` send chunks of lines up a tree and differ in its shape
//! (`lines`); `direct` and `shared` combine from the callers' buffers. All combine in the order
//! of the ranks, so an operator need only be associative.

use crate::algorithm::registry;

mod lines;

registry! {
    chain: Chain,
    direct: Direct,
    flat: Flat,
    knomial: Knomial,
    shared: Shared,
}
