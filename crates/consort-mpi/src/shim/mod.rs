//! The shim: how it is compiled, found, loaded and used.

mod cache;
mod launcher;
mod library;
mod prepare;
mod shim_error;
mod transport;
mod watch;

pub use launcher::{HostPlacement, Launcher};
pub use prepare::{CachedShim, find_program, intel_root, prepare};
pub use shim_error::ShimError;
pub use transport::{Mpi, MpiError};
