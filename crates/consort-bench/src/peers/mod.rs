//! The libraries that Consort is compared with.
//!
//! 1. [`threads`]: the collectives that a programmer writes with a library's barrier;
//! 2. [`mpi`]: the installed MPI libraries, by a program in C.

mod barriers;
pub mod mpi;
pub mod threads;
