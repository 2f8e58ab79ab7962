//! Rank arithmetic: computes communication partners without messages.

pub mod dissemination;
pub mod groups;
pub mod halving;
pub mod slices;
pub mod subtree;
pub mod tree;
