//! OpenMP as a peer: a `program` in C, compiled by the compiler that is there.

mod program;

pub use program::OpenMp;
