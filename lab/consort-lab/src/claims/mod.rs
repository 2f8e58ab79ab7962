//! The papers' claims, as rows of a table, and their evaluation.

mod claim;
pub mod standing;
mod table;

pub use claim::{Claim, Place};
pub use table::{CLAIMS, figure, find};
