//! T8 to T15 (Petrović 2015, chapters 6 and 7): locks and delegation on the TILE-Gx,
//! the Xeon and the Opteron of the thesis, simulated. The code is that of `consort-sync`.
//!
//! 1. `run`: an object under a lock or a scheme on a simulated machine; `containers`: such objects;
//!    `test_and_set`: a lock that the library does not have; `private`: sections without fences;
//!    `machines`: the thesis' machines, and the placement of threads;
//! 2. `curves`: such runs over a number, for instance of threads; `report`: figures with the
//!    thesis' values, as a page;
//! 3. `queue_locks`, `delegation`, `stalls`, `combining`, `objects`: T8 to T12, on the TILE-Gx;
//! 4. `x86_objects`, `optimizations`, `sections`: T12, T13, T15, on the Xeon and the Opteron;
//!    `references`: T14;
//! 5. `sockets`: F8, the library's locks on both.

pub mod combining;
mod containers;
mod curves;
pub mod delegation;
pub mod machines;
pub mod objects;
pub mod optimizations;
mod private;
pub mod queue_locks;
pub mod references;
mod report;
mod run;
pub mod sections;
pub mod sockets;
pub mod stalls;
mod test_and_set;
pub mod x86_objects;

#[cfg(test)]
mod tests;
