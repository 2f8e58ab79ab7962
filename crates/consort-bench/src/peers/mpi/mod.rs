//! MPI libraries as peers.
//!
//! 1. `installation`: an installed MPI, which compiles and starts programs;
//! 2. `program`: the C program, and its output;
//! 3. `rows`: the rows of all named libraries, or the reasons why there are none.

mod installation;
mod program;
mod rows;

pub use rows::rows;
