//! Starts the processes of a job, passes on their output, and ends them all when one fails.
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
//! If the launcher is killed, the front ends all processes: it is the launcher's parent. If the
//! front is killed, the launcher ends all processes: it waits for the end of a pipe that the front
//! holds. Each inherits processes whose parents have ended (`PR_SET_CHILD_SUBREAPER`). A stopped
//! launcher continues when its front is killed (`PR_SET_PDEATHSIG`), and PEs are killed with their
//! launcher.
//!
//! | file | contents |
//! | --- | --- |
//! | `launch` | the description of a launch, and its outcome |
//! | `front` | the process between the shell and the launcher |
//! | `start` | starts the processes |
//! | `watch` | the launcher's loop: signals, output; how the job ends |
//! | `interrupts` | the signals that end a job |
//! | `grandchildren` | PEs run by descendants of the launcher's processes |
//! | `output` | passes on lines |
//! | `sink` | their destination, which never waits for a reader |
//! | `children` | ends everything that was started |
//! | `stack` | enough stack for a command, regardless of `ulimit -s` |
//! | `system` | signals, and the preparation of a process before its program |

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
pub use launch::{EndReason, Launch, Outcome};
#[cfg(target_os = "linux")]
pub use stack::with_room;

/// Runs a job to its end. Until then, the calling process passes on signals.
///
/// # Errors
/// When the processes cannot be started, or the calling process has other threads.
#[cfg(target_os = "linux")]
pub fn run(launch: &Launch) -> std::io::Result<u8> {
    front::run(launch)
}

/// Fails: this system does not support processes as PEs.
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
