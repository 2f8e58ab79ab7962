//! Children that tests fork.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::{Duration, Instant},
};

/// The time limit of a child. It only ends a hang.
const LIMIT: Duration = Duration::from_secs(20);

/// Forks a child. Returns 0 there, and the child's number in the parent.
///
/// The child is a copy of the calling thread alone: locks that other threads hold stay locked in
/// it. It ends by [`end`], so that it does not run the remaining tests.
///
/// # Panics
/// When the system refuses a child.
#[must_use]
pub fn fork() -> i32 {
    // SAFETY: the child is a copy of this process. The test decides what it does.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "the system refuses a child");
    child
}

/// Ends a child, with status 0 if it succeeds.
pub fn end(is_well: bool) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(i32::from(!is_well)) }
}

/// Waits for a child.
///
/// # Panics
/// When its status is not 0, or when it takes more than 20 s: it is then killed.
pub fn wait(what: &str, child: i32) {
    let begun = Instant::now();
    let mut status = 0;
    // SAFETY: writes the variable.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if begun.elapsed() > LIMIT {
            // SAFETY: the child, for which nobody has waited yet.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("{what}: the child hangs");
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(status, 0, "{what}");
}

/// Runs `body` in a child, and waits for it.
///
/// # Panics
/// When `body` panics, or takes more than 20 s.
pub fn run(what: &str, body: impl FnOnce()) {
    match fork() {
        0 => end(catch_unwind(AssertUnwindSafe(body)).is_ok()),
        child => wait(what, child),
    }
}
