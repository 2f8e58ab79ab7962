//! PEs on many machines: a [transport](consort_native::Transport) over the MPI that a cluster has.
//!
//! No MPI is needed to build a program. A small library in C, the *shim*, stands between the
//! program and the MPI; that MPI's own `mpicc` compiles it where it is first used, into a cache. So
//! one program works with any MPI, whatever its interface in memory is.
//!
//! | file | what |
//! | --- | --- |
//! | `launcher` | which launcher an `mpirun` is, and its options for hosts |
//! | `environment` | what the launchers of MPIs tell their processes |
//! | `shim.c` | what is needed of MPI |
//! | `prepare` | finds an MPI's compiler, compiles the shim by it, and finds that again |
//! | `cache` | the folder in which shims are kept, and which of them may be loaded |
//! | `no_shim` | why there is no shim |
//! | `library` | the shim's functions |
//! | `transport` | frames over them |
//! | `watch` | says that processes do not come |

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
