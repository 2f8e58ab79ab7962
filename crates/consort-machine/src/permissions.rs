//! The user of this process, and the places from which it may run programs.

#![cfg_attr(unix, expect(unsafe_code, reason = "makes system calls"))]

use std::path::Path;

/// Returns the number of the user with whose rights this process acts.
#[cfg(unix)]
#[must_use]
pub fn effective_user() -> u32 {
    // SAFETY: the call reads no memory of this process.
    unsafe { libc::geteuid() }
}

/// Returns whether a path's file system is mounted so that nothing in it may be run or loaded.
#[must_use]
pub fn is_mounted_noexec(path: &Path) -> bool {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use std::{ffi::CString, mem::MaybeUninit, os::unix::ffi::OsStrExt as _};

        let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
        let mut about = MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: the path ends with a zero byte, and the local variable has room for the
        // structure.
        if unsafe { libc::statvfs(path.as_ptr(), about.as_mut_ptr()) } != 0 {
            return false;
        }
        // SAFETY: the call has succeeded, so it has filled the structure.
        unsafe { about.assume_init() }.f_flag & libc::ST_NOEXEC != 0
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        let _ = path;
        false
    }
}
