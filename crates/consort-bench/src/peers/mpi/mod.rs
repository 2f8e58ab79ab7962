//! MPI libraries as peers.
//!
//! 1. `installation`: an installed MPI, which compiles and starts programs;
//! 2. `program`: the C program, and its output;
//! 3. `figures`: the figures of all named libraries, or the reasons why there are none.

mod figures;
mod installation;
mod program;

pub use figures::figures;
