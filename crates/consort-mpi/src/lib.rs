//! PEs on many machines: a [`Transport`] over the MPI that a cluster has.
//!
//! No MPI is needed to build a program. A small library in C, the *shim*, stands between the
//! program and the MPI; that MPI's own `mpicc` compiles it where it is first used, into a cache. So
//! one program works with any MPI, whatever its interface in memory is.
//!
//! | file | what |
//! | --- | --- |
//! | `environment` | what the launchers of MPIs tell their processes |
//! | `shim.c` | what is needed of MPI |
//! | `prepare` | finds an MPI's compiler, compiles the shim by it, and finds that again |
//! | `library` | the shim's functions |
//! | `transport` | frames over them |

mod environment;
mod library;
mod prepare;
mod transport;

use consort_native::Transport;

pub use environment::{Flavor, Started};
pub use prepare::{NoShim, Prepared, find_program, intel_root, prepare};
pub use transport::NoMpi;

/// This process's end of a transport over the MPI that has started it. All processes call this
/// equally often, with settings of the same names.
///
/// # Errors
/// When there is no shim for that MPI, or it fails, or a setting is not the same in all processes.
pub fn begin(
    started: &Started,
    settings: &[(&'static str, u64)],
) -> Result<Box<dyn Transport>, NoMpi> {
    Ok(Box::new(transport::Mpi::begin(started, settings)?))
}
