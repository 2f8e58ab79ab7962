//! Work at the end of a thread, after the destructors of its thread-local variables, because they
//! may still use what this work releases.

#![expect(unsafe_code, reason = "registers a destructor with the thread library")]

use std::{ffi::c_void, ptr, sync::OnceLock};

use super::fork::{hold_forks, stay_loaded};

/// A key whose destructor does the work.
struct ExitKey {
    key: libc::pthread_key_t,
    work: fn(),
}

/// `None` if the process had no key left.
static END: OnceLock<Option<ExitKey>> = OnceLock::new();

extern "C" fn do_work(_: *mut c_void) {
    if let Some(Some(end)) = END.get() {
        (end.work)();
    }
}

fn make_key(work: fn()) -> Option<ExitKey> {
    let mut key = 0;
    // SAFETY: the pointer is to a local variable, and the destructor takes any value.
    let failed = unsafe { libc::pthread_key_create(&raw mut key, Some(do_work)) } != 0;
    (!failed).then_some(ExitKey { key, work })
}

/// Arranges for `work` to run when the calling thread ends. All callers must pass the same `work`.
/// If the thread calls this again while the work runs, the work runs once more. It does not run at
/// the end of the process, nor if the process has run out of keys.
pub fn at_thread_exit(work: fn()) {
    stay_loaded(); // the key's destructor is code of this library
    let end = END.get().unwrap_or_else(|| {
        let _hold = hold_forks();
        END.get_or_init(|| make_key(work))
    });
    if let Some(end) = end {
        // SAFETY: the key is never deleted. The value is not 0, so the destructor is called.
        unsafe { libc::pthread_setspecific(end.key, ptr::without_provenance(1)) };
    }
}
