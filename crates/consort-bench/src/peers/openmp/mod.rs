//! OpenMP as a peer, by the libraries of the C compilers that are there.
//!
//! `program`: a program in C, compiled here, and its launches.

mod program;

pub use program::{Launch, Library, OpenMp};
