//! Rank arithmetic and message patterns that several algorithms share; no collective by itself.

pub mod access;
pub mod dissemination;
pub mod halving;
pub mod pieces;
pub mod relay;
pub mod rounds;
pub mod shown;
pub mod stream;
pub mod subtree;
pub mod tree;
