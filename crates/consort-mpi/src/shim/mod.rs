//! The shim: how it is compiled, found, loaded and used.

mod cache;
mod launcher;
mod library;
mod no_shim;
mod prepare;
mod transport;
mod watch;

pub use launcher::{Launcher, OnHosts};
pub use no_shim::NoShim;
pub use prepare::{Prepared, find_program, intel_root, prepare};
pub use transport::{Mpi, NoMpi};
