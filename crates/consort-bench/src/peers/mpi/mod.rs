//! MPI libraries as peers.
//!
//! 1. `installation`: an installed MPI, which compiles and starts programs;
//! 2. `program`: the C program, and its output;
//! 3. `rows`: the rows of all named libraries, or the reasons why there are none.

mod installation;
mod program;
mod rows;

use std::{path::Path, process::Command, sync::atomic::AtomicBool};

use anyhow::Context;

pub use rows::rows;

/// The command by which the mpirun in `PATH` starts so many processes of a program, which is then
/// to be added with its arguments.
///
/// # Errors
/// When there is none, or it does not start.
pub fn launcher(processes: u32, stop: &AtomicBool) -> anyhow::Result<Command> {
    let found = installation::Mpi::find(Path::new("mpirun"), stop);
    let found = found.context("--fabric mpi starts them by the mpirun in PATH")?;
    Ok(found.launcher(processes, false))
}
