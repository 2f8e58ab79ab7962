//! Processes that keep cores busy while something else is measured.
//!
//! A busy process is this program, started again with hidden arguments. It never waits, and ends
//! when its parent has ended.

use std::{
    env,
    hint::spin_loop,
    os::unix::process::parent_id,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result};

/// The arguments with which this program starts itself to take part; the part follows.
pub(super) const ARGUMENTS: [&str; 3] = ["bench", "fork-join", "--launch"];
/// The part of a busy process.
pub(super) const BUSY: &str = "busy";

/// Processes that use a core all the time, until this is dropped.
#[derive(Debug)]
pub(super) struct BusyProcesses(Vec<Child>);

impl BusyProcesses {
    /// Starts this many.
    ///
    /// # Errors
    /// If the system refuses a process.
    pub(super) fn start(count: usize) -> Result<Self> {
        // If one cannot be started, dropping the others ends them.
        let mut processes = Self(Vec::new());
        for _ in 0..count {
            let program = env::current_exe().context("cannot find the path of this program")?;
            let mut command = Command::new(program);
            command.args(ARGUMENTS).arg(BUSY).stdin(Stdio::null()).stdout(Stdio::null());
            processes.0.push(command.spawn().context("cannot start a busy process")?);
        }
        Ok(processes)
    }
}

impl Drop for BusyProcesses {
    fn drop(&mut self) {
        for process in &mut self.0 {
            // A process that has ended by itself needs nothing.
            let _ = process.kill().and_then(|()| process.wait());
        }
    }
}

/// Keeps a core busy until the parent process ends.
pub(super) fn stay_busy() {
    let parent = parent_id();
    while parent_id() == parent {
        (0..1_000_000).for_each(|_| spin_loop());
    }
}
