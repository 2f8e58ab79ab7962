//! PEs on many machines: a [transport](consort_native::Transport) over the MPI that a cluster has.
//!
//! Building a program requires no MPI. A small C library, the *shim*, is between the program and
//! the MPI. The MPI's own `mpicc` compiles it into a cache when it is first used. So one program
//! works with any MPI, whatever its ABI.
//!
//! | file | contents |
//! | --- | --- |
//! | `launcher` | which launcher an `mpirun` is, and its options for hosts |
//! | `environment` | the variables that MPI launchers set for their processes |
//! | `shim.c` | the functions that are needed of MPI |
//! | `prepare` | finds an MPI's compiler, compiles the shim with it, or finds a stored shim |
//! | `cache` | the folder that stores shims, and which of them may be loaded |
//! | `no_shim` | why there is no shim |
//! | `library` | the shim's functions |
//! | `transport` | frames over them |
//! | `watch` | warns if processes do not start |

#[cfg(test)]
use consort_sandbox as _;

mod cache;
mod environment;
mod launcher;
mod library;
mod no_shim;
mod prepare;
mod transport;
mod watch;

pub use environment::{Flavor, Started};
pub use launcher::{Launcher, OnHosts};
pub use no_shim::NoShim;
pub use prepare::{Prepared, find_program, intel_root, prepare};
pub use transport::{Mpi, NoMpi};
