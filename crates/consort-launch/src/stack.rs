//! Enough stack for a command, regardless of `ulimit -s`.
//!
//! The limit determines the stack of a process's first thread, which may be too small for a
//! command. The command then runs on another thread, while the first thread only waits for it and
//! receives no signals. So the other thread may fork the process as if it were the only one.

use std::{io, sync::atomic::AtomicBool, thread};

use rustix::process::{Resource, getrlimit};

use crate::system;

/// The size of the stack for a command.
const BYTES: usize = 8 << 20;
/// Below this size, the stack of the first thread may be too small.
const LEAST: u64 = 4 << 20;

/// Runs a command on a stack that is large enough.
///
/// # Errors
/// When the stack is small, and no thread with a larger one can be started.
///
/// # Panics
/// As the command.
pub fn with_room<R: Send>(command: impl FnOnce() -> R + Send) -> io::Result<R> {
    match getrlimit(Resource::Stack).current {
        Some(bytes) if bytes < LEAST => on_larger_stack(command),
        _ => Ok(command()),
    }
}

fn on_larger_stack<R: Send>(command: impl FnOnce() -> R + Send) -> io::Result<R> {
    let waits = &AtomicBool::new(false);
    thread::scope(|scope| {
        let body = move || {
            system::await_waiter(waits);
            command()
        };
        let named = thread::Builder::new().name("main".to_owned()).stack_size(BYTES);
        let thread = named.spawn_scoped(scope, body).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!(
                    "the stack is too small, and a thread with a stack of {} MiB cannot be started \
                     ({error}): raise `ulimit -s`, `ulimit -v` or `ulimit -u`",
                    BYTES >> 20
                ),
            )
        })?;
        match system::wait_for(|| thread.join(), waits) {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
