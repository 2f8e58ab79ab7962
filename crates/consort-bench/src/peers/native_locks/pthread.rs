//! The C library's locks and condition variables, with default attributes.
#![expect(unsafe_code, reason = "calls the C library")]

use std::ffi::{c_int, c_void};

use libc::{pthread_cond_t, pthread_mutex_t, pthread_rwlock_t};

use super::functions::{Access, BYTES, LockFunctions, LockLibrary};

/// The C library.
pub(crate) struct Pthread;

const _: () = assert!(
    size_of::<pthread_mutex_t>() <= BYTES
        && size_of::<pthread_rwlock_t>() <= BYTES
        && size_of::<pthread_cond_t>() <= BYTES
);

/// Functions that call one of the C library, which returns 0 if it succeeds.
macro_rules! functions {
    ($($name:ident: $called:path;)*) => {
        $(
            /// # Safety
            /// As the function of the C library.
            unsafe extern "C" fn $name(object: *mut c_void) {
                // SAFETY: the caller ensures it.
                let error = unsafe { $called(object.cast()) };
                assert_eq!(error, 0, "the C library refuses a lock");
            }
        )*
    };
}

functions! {
    mutex_lock: libc::pthread_mutex_lock;
    mutex_unlock: libc::pthread_mutex_unlock;
    read: libc::pthread_rwlock_rdlock;
    write: libc::pthread_rwlock_wrlock;
    unlock: libc::pthread_rwlock_unlock;
    notify_one: libc::pthread_cond_signal;
    notify_all: libc::pthread_cond_broadcast;
}

/// Functions that return whether they have locked.
macro_rules! tries {
    ($($name:ident: $called:path;)*) => {
        $(
            /// # Safety
            /// As the function of the C library.
            unsafe extern "C" fn $name(object: *mut c_void) -> c_int {
                // SAFETY: the caller ensures it.
                c_int::from(unsafe { $called(object.cast()) } == 0)
            }
        )*
    };
}

tries! {
    mutex_try_lock: libc::pthread_mutex_trylock;
    try_read: libc::pthread_rwlock_tryrdlock;
    try_write: libc::pthread_rwlock_trywrlock;
}

/// # Safety
/// As `pthread_cond_wait`.
unsafe extern "C" fn wait(condition: *mut c_void, mutex: *mut c_void) {
    // SAFETY: the caller ensures it.
    let error = unsafe { libc::pthread_cond_wait(condition.cast(), mutex.cast()) };
    assert_eq!(error, 0, "the C library refuses to wait");
}

static FUNCTIONS: LockFunctions = LockFunctions {
    mutex: Access { lock: mutex_lock, try_lock: mutex_try_lock, unlock: mutex_unlock },
    writer: Access { lock: write, try_lock: try_write, unlock },
    reader: Access { lock: read, try_lock: try_read, unlock },
    wait,
    notify_one,
    notify_all,
};

// SAFETY: on Linux, the initializers of the C library are zeros, and its destructors do nothing if
// no thread uses the object.
unsafe impl LockLibrary for Pthread {
    #[inline(always)]
    fn functions() -> &'static LockFunctions {
        &FUNCTIONS
    }
}
