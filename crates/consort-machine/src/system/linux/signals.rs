//! Signal masks of threads.

#![expect(unsafe_code, reason = "changes signal masks")]

use std::{mem::MaybeUninit, ptr::null_mut};

use libc::sigset_t;

/// Blocks all signals of this thread. Returns its signal mask from before.
pub(super) fn block() -> sigset_t {
    let mut all = MaybeUninit::<sigset_t>::zeroed();
    let mut before = MaybeUninit::<sigset_t>::zeroed();
    // SAFETY: the set is a local variable.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: both sets are local variables.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    // SAFETY: it has been written, and an all-zero set is valid too.
    unsafe { before.assume_init() }
}

/// Sets this thread's signal mask.
pub(super) fn restore(mask: &sigset_t) {
    // SAFETY: the set is valid, and the old one is not requested.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, null_mut()) };
}

/// Does some work while all signals of this thread are blocked. Threads that start meanwhile block
/// all signals, so the program's handlers never run on them.
pub fn without_signals<R>(work: impl FnOnce() -> R) -> R {
    let before = block();
    let done = work();
    restore(&before);
    done
}
