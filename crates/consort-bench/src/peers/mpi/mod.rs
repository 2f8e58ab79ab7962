//! MPI libraries as peers.
//!
//! 1. `installation`: an installed MPI, which compiles and starts programs;
//! 2. `program`: the C program, and its output;
//! 3. `rows`: the rows of all named libraries, or the reasons why they are missing.

mod installation;
mod program;
mod rows;

use std::{path::Path, process::Command, sync::atomic::AtomicBool};

use anyhow::Context;

pub use rows::rows;

/// Returns the command with which the mpirun in `PATH` starts `processes` processes of a program.
/// The caller appends the program and its arguments.
///
/// # Errors
/// If there is no mpirun, or it does not start.
pub fn launcher(processes: usize, stop: &AtomicBool) -> anyhow::Result<Command> {
    let found = installation::Mpi::find(Path::new("mpirun"), stop);
    let found = found.context("--fabric mpi starts them by the mpirun in PATH")?;
    Ok(found.launcher(processes, false))
}
