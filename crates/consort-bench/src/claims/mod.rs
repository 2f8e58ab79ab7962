//! The papers' claims, as rows of a table, and how each is evaluated.

mod claim;
mod table;

pub use claim::{Claim, Place};
pub use table::{CLAIMS, find};
