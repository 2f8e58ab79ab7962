//! Asynchronous broadcasts: only the source calls, and several sources broadcast at once.
//!
//! They are no calls that all PEs make, so they have no plan and no place among the collectives'
//! registries: a PE takes part from when it begins to until all have left.

mod oc_bcast;

pub use oc_bcast::{OcBcastAsync, Turns};
