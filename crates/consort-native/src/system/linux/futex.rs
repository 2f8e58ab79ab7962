//! The system's futexes.

use std::{sync::atomic::AtomicU32, time::Duration};

use rustix::{
    io::Errno,
    thread::futex::{self, Flags, Timespec},
};

fn flags(of_process: bool) -> Flags {
    if of_process { Flags::PRIVATE } else { Flags::empty() }
}

/// Sleeps while the word is `expected`, until woken, or for `limit`. It may wake early. Returns
/// whether the time is up.
pub(crate) fn sleep(word: &AtomicU32, expected: u32, limit: Duration, of_process: bool) -> bool {
    let limit = Timespec::try_from(limit).ok();
    futex::wait(word, flags(of_process), expected, limit.as_ref()) == Err(Errno::TIMEDOUT)
}

/// Wakes all sleepers.
pub(crate) fn wake_all(word: &AtomicU32, of_process: bool) {
    // It can only fail for a word that is not mapped or not aligned.
    let _ = futex::wake(word, flags(of_process), i32::MAX.unsigned_abs());
}
