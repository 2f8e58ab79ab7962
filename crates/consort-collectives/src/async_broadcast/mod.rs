//! Asynchronous broadcasts: those that only their source calls, several sources at once.
//!
//! They are no calls that all PEs make, so they have no plan and no place among the collectives'
//! registries: a PE takes part from when it begins to until all have said that they are done.

mod oc_bcast;

pub use oc_bcast::{OcBcastAsync, Turns};
