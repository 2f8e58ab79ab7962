//! Room on the stack, whatever `ulimit -s` says.
//!
//! The first thread of a process has the stack that the limit allows, which may be too small for a
//! command. Then the command runs on another thread, and the first one waits for it: it does
//! nothing else, and hears no signals. So a process may be forked from the other thread as if it
//! had one (see [`waiting`]).

use std::{
    io,
    sync::atomic::{
        AtomicUsize,
        Ordering::{Acquire, Release},
    },
    thread,
};

use rustix::process::{Resource, getrlimit};

use crate::system;

/// The stack that a command has.
const BYTES: usize = 8 << 20;
/// A smaller stack may be too small for one.
const LEAST: u64 = 4 << 20;

/// The threads that do nothing but wait for another one, which runs in their place.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// How many threads do nothing but wait for another one, which runs in their place: they hold no
/// lock, and take none before it has ended.
pub(crate) fn waiting() -> usize {
    // Partner: the store before the wait.
    WAITING.load(Acquire)
}

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
    thread::scope(|scope| {
        let body = move || {
            while waiting() == 0 {
                thread::yield_now();
            }
            command()
        };
        let named = thread::Builder::new().name("main".to_owned()).stack_size(BYTES);
        let thread = named.spawn_scoped(scope, body).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!(
                    "the stack is small, and no thread with one of {} MiB can be started \
                     ({error}): raise `ulimit -s`, `ulimit -v` or `ulimit -u`",
                    BYTES >> 20
                ),
            )
        })?;
        // The other thread has the signals that this one had.
        let before = system::block_all_signals();
        // Release: this thread does nothing after it but wait.
        WAITING.store(1, Release);
        let ended = thread.join();
        WAITING.store(0, Release);
        system::set_signals(&before);
        match ended {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
