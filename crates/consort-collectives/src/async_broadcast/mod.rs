//! Asynchronous broadcasts: only the source calls, and several sources broadcast at once.
//!
//! All PEs take part, but they do not make the same calls, so there are no plans and no registry. A
//! PE takes part from the creation of its [`OcBcastAsync`] until all PEs have left.

mod oc_bcast;

pub use oc_bcast::{OcBcastAsync, Variant};
