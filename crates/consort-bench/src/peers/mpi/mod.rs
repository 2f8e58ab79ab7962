//! MPI libraries as peers.
//!
//! 1. `installation`: an MPI as it is installed, which compiles and starts programs;
//! 2. `program`: the C program, and what it prints;
//! 3. `figures`: figures of all libraries that are named, or why there are none.

mod figures;
mod installation;
mod program;

pub use figures::figures;
