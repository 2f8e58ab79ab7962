//! Collectives: each algorithm once, over any fabric.
//!
//! `rank_math/` determines which PEs communicate, and `protocols/` determines how. Each collective
//! has a folder with one file per algorithm, and the folder's `mod.rs` is its registry. Each file
//! implements [`Algorithm`]. [`barrier_get`] serves several collectives, whose registries name it
//! with `use`. [`compose`] makes one algorithm out of two. [`Plan`] adds the entry and exit
//! barriers that the synchronization modes require. [`flow`] keeps the PEs of a team within a
//! window of calls.

mod algorithm;
pub mod all_gather;
pub mod all_reduce;
pub mod all_to_all;
pub mod async_broadcast;
pub mod barrier;
pub mod barrier_get;
pub mod broadcast;
pub mod compose;
mod fingerprint;
pub mod flow;
pub mod gather;
mod plan;
pub mod protocols;
pub mod rank_math;
pub mod reduce;
pub mod reduce_scatter;
mod registry;
pub mod scan;
pub mod scatter;
mod setting;
pub mod trees;
mod vendor;

pub use algorithm::{Algorithm, Description, Direction, Parameter, PlanError, Visitor};
pub use fingerprint::fingerprint;
pub use plan::{EntryAndExit, Plan};
pub use registry::{
    candidates, check, check_of, describe, estimate_ns, names, of_parts, of_values, revisions,
    serves, visit,
};
pub use setting::Setting;
pub use vendor::Vendor;
