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
//! Either of the front and the launcher ends all processes when the other is killed: each is told
//! of it by the system, and each inherits the processes whose parents have ended
//! (`PR_SET_CHILD_SUBREAPER`).
//!
//! | file | what |
//! | --- | --- |
//! | `launch` | what to start, and what has come of it |
//! | `front` | the process between the shell and the launcher |
//! | `start` | starts the processes |
//! | `watch` | the launcher's loop: signals, output, ends |
//! | `output` | passes on lines |
//! | `children` | ends whatever has been started |
//! | `system` | signals, and what a process does before its program |

#[cfg(target_os = "linux")]
mod children;
#[cfg(target_os = "linux")]
mod front;
mod launch;
#[cfg(target_os = "linux")]
mod output;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod watch;

pub use consort_native::Binding;
pub use launch::{Launch, Outcome, Trouble};

/// Runs a job to its end. The calling process passes on signals, and ends when the job has ended:
/// it has no other threads.
///
/// # Errors
/// When the processes cannot be started.
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
