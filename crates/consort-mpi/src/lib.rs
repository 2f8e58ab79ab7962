//! PEs on many machines: a [transport](consort_native::Transport) over the MPI that a cluster has.
//!
//! Building a program requires no MPI. A small C library, the *shim*, is between the program and
//! the MPI. The MPI's own `mpicc` compiles it into a cache when it is first used. So one program
//! works with any MPI, whatever its ABI.
//!
//! | file | contents |
//! | --- | --- |
//! | `environment` | the variables that MPI launchers set for their processes |
//! | `shim/launcher` | which launcher an `mpirun` is, and its options for hosts |
//! | `shim/shim.c` | the MPI functions that Consort needs |
//! | `shim/prepare` | finds an MPI's compiler, compiles the shim with it, or finds a stored shim |
//! | `shim/cache` | the folder that stores shims, and which of them may be loaded |
//! | `shim/shim_error` | why the shim cannot be used |
//! | `shim/library` | the shim's functions |
//! | `shim/transport` | frames over them |
//! | `shim/watch` | warns if processes do not start |
//! | `without_shim` | the error of a program that was compiled without the feature `shim` |

#[cfg(test)]
use consort_sandbox as _;

mod environment;
#[cfg(feature = "shim")]
mod shim;
#[cfg(not(feature = "shim"))]
mod without_shim;

pub use environment::{Flavor, MpiProcess};
#[cfg(feature = "shim")]
pub use shim::{
    CachedShim, HostPlacement, Launcher, Mpi, MpiError, ShimError, find_program, intel_root,
    prepare,
};
#[cfg(not(feature = "shim"))]
pub use without_shim::{Mpi, MpiError};
