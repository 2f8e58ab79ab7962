//! The libraries that Consort is compared with.
//!
//! 1. [`threads`]: collectives that a programmer writes with the barrier of a thread library;
//! 2. [`mpi`]: the installed MPI libraries, measured by a program in C;
//! 3. [`openmp`]: the parallel regions of the C compiler, likewise.

mod barriers;
mod commands;
pub mod mpi;
pub mod openmp;
pub mod threads;
