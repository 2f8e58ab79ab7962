//! Room on the stack, whatever `ulimit -s` says.
//!
//! The first thread of a process has the stack that the limit allows, which may be too small for a
//! command. Then the command runs on another thread, and the first one waits for it: it does
//! nothing else, and hears no signals. So a process may be forked from the other thread as if it
//! had one.

use std::{io, sync::atomic::AtomicBool, thread};

use rustix::process::{Resource, getrlimit};

use crate::system;

/// The stack that a command has.
const BYTES: usize = 8 << 20;
/// A smaller stack may be too small for one.
const LEAST: u64 = 4 << 20;

/// Runs a command on a stack that has room for it.
///
/// # Errors
/// When the stack is small, and there can be no thread with a larger one.
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
