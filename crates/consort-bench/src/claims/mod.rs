//! The papers' claims, as rows of a table, and their evaluation.

mod claim;
mod table;

pub use claim::{Claim, Place};
pub use table::{CLAIMS, find};
