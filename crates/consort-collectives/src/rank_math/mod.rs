//! Rank arithmetic: who talks to whom, without a message.

pub mod dissemination;
pub mod halving;
pub mod subtree;
pub mod tree;
