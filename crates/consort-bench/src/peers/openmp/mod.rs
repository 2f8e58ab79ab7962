//! OpenMP as a peer, by the libraries of the installed C compilers.
//!
//! 1. `program`: a program in C, compiled here, and its launches;
//! 2. `rows`: the rows of collectives by that program.

mod program;
mod rows;

pub use program::{Library, OpenMp, OpenMpLaunch};
pub use rows::{rows, serves};
