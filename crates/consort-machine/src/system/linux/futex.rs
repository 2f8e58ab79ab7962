//! The system's futexes.

#![expect(unsafe_code, reason = "makes a system call for which the C library has no function")]

use std::{io, ptr, sync::atomic::AtomicU32, time::Duration};

fn operation(operation: i32, of_process: bool) -> i32 {
    if of_process { operation | libc::FUTEX_PRIVATE_FLAG } else { operation }
}

/// Sleeps while the word is `expected`, until woken, or for `limit`. It may wake early. Returns
/// whether the time is up.
pub fn sleep(word: &AtomicU32, expected: u32, limit: Duration, of_process: bool) -> bool {
    // A limit that does not fit the type is as good as none: callers check again much earlier.
    let limit = libc::timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(libc::c_long::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    let operation = operation(libc::FUTEX_WAIT, of_process);
    // SAFETY: both pointers are to memory that is borrowed for the whole call. The system only
    // reads the word and the time.
    let result = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, expected, &raw const limit)
    };
    result != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT)
}

/// Wakes all sleepers.
pub fn wake_all(word: &AtomicU32, of_process: bool) {
    let operation = operation(libc::FUTEX_WAKE, of_process);
    // It can only fail for a word that is not mapped or not aligned.
    // SAFETY: the system takes the word's address as a name, and reads no memory.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, i32::MAX, ptr::null::<u8>())
    };
}
