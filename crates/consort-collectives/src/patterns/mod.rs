//! Rank arithmetic and message patterns that several algorithms share; no collective by itself.

pub mod dissemination;
pub mod halving;
pub mod rounds;
pub mod shown;
pub mod stream;
pub mod tree;
