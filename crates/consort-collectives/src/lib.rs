//! Collectives, each algorithm once, over any fabric.
//!
//! `patterns/` is rank arithmetic; then there is one folder a collective with one file an
//! algorithm, and the folder's `mod.rs` is its registry. [`Algorithm`] is what a file implements,
//! [`compose`] makes one of two, [`Plan`] brackets it with the synchronization that the caller
//! asked for, and [`flow`] keeps the PEs of a team within a window of calls.

mod algorithm;
pub mod all_gather;
pub mod all_gather_v;
pub mod all_reduce;
pub mod announce;
pub mod barrier;
pub mod broadcast;
pub mod compose;
pub mod exchange;
pub mod exchange_v;
pub mod flow;
pub mod gather;
pub mod gather_v;
pub mod patterns;
mod plan;
pub mod reduce;
pub mod reduce_scatter;
pub mod scan;
pub mod scatter;
pub mod scatter_v;

pub use algorithm::{
    Algorithm, Direction, Parameter, PlanError, Setting, Visitor, candidates, estimate_ns, names,
    serves, visit,
};
pub use plan::Plan;
