//! Starts the processes of a job, passes on what they write, and ends them all when one fails.
//!
//! Linux only: elsewhere [`run`] returns an error.
//!
//! ```text
//! consort run              the front: passes on signals and the status
//!   └ the launcher         starts the processes, reads what they write, waits for them
//!       ├ PE 0
//!       └ PE 1             and whatever they start
//! ```
//!
//! Either of the front and the launcher ends all processes when the other is killed: the front is
//! the launcher's parent, and holds a pipe at whose end the launcher waits. Each inherits the
//! processes whose parents have ended (`PR_SET_CHILD_SUBREAPER`). A launcher that is stopped goes
//! on when its front is killed (`PR_SET_PDEATHSIG`), and PEs are killed with their launcher.
//!
//! | file | what |
//! | --- | --- |
//! | `launch` | what to start, and what has come of it |
//! | `front` | the process between the shell and the launcher |
//! | `start` | starts the processes |
//! | `watch` | the launcher's loop: signals, output; how the job ends |
//! | `interrupts` | the signals that are to end a job |
//! | `grandchildren` | PEs that are run by what the launcher's processes have started |
//! | `output` | passes on lines |
//! | `sink` | where they go, without waiting for who reads them |
//! | `children` | ends whatever has been started |
//! | `stack` | room for a command, whatever `ulimit -s` says |
//! | `system` | signals, and what a process does before its program |

#[cfg(test)]
use consort_sandbox as _;

#[cfg(target_os = "linux")]
mod children;
#[cfg(target_os = "linux")]
mod front;
#[cfg(target_os = "linux")]
mod grandchildren;
#[cfg(target_os = "linux")]
mod interrupts;
mod launch;
#[cfg(target_os = "linux")]
mod output;
#[cfg(target_os = "linux")]
mod sink;
#[cfg(target_os = "linux")]
mod stack;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod watch;

pub use consort_native::Binding;
pub use launch::{Launch, Outcome, Trouble};
#[cfg(target_os = "linux")]
pub use stack::with_room;

/// Runs a job to its end. The calling process passes on signals, and ends when the job has ended.
///
/// # Errors
/// When the processes cannot be started, or the calling process has other threads.
#[cfg(target_os = "linux")]
pub fn run(launch: &Launch) -> std::io::Result<u8> {
    front::run(launch)
}

/// There are no such processes.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn run(_: &Launch) -> std::io::Result<u8> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Runs a command.
///
/// # Errors
/// Never.
#[cfg(not(target_os = "linux"))]
pub fn with_room<R: Send>(command: impl FnOnce() -> R + Send) -> std::io::Result<R> {
    Ok(command())
}
