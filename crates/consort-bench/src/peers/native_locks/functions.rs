//! The functions of a library with locks.
#![expect(unsafe_code, reason = "the functions of a library in C are unsafe to call")]

use std::ffi::{c_int, c_void};

/// The size of a lock or a condition variable. The sources in C and C++ assert that it suffices.
pub(super) const BYTES: usize = 64;

pub(super) type LockFn = unsafe extern "C" fn(*mut c_void);
pub(super) type TryLockFn = unsafe extern "C" fn(*mut c_void) -> c_int;
pub(super) type WaitFn = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// The functions of one kind of access to a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) lock: LockFn,
    pub(super) try_lock: TryLockFn,
    pub(super) unlock: LockFn,
}

/// The functions of a library. Each lock is used as a mutex or as a reader-writer lock.
#[derive(Debug)]
pub(crate) struct LockFunctions {
    pub(super) mutex: Access,
    pub(super) writer: Access,
    pub(super) reader: Access,
    pub(super) wait: WaitFn,
    pub(super) notify_one: LockFn,
    pub(super) notify_all: LockFn,
}

/// A library with locks and condition variables.
///
/// # Safety
/// The functions implement them, in [`BYTES`] bytes that are 0 at first, and that need no
/// destructor. A function may be called by any thread.
pub(crate) unsafe trait LockLibrary: 'static {
    fn functions() -> &'static LockFunctions;
}
