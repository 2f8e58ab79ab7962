//! Preemptions of the calling thread, and the size of memory, as the system reports them.

#![expect(unsafe_code, reason = "makes a system call that fills a structure")]

use std::mem::MaybeUninit;

/// Returns how often the calling thread was preempted.
pub fn involuntary_switches() -> Option<u64> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is to a local variable that has room for the structure.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) } != 0;
    if failed {
        return None;
    }
    // SAFETY: the call has succeeded, so it has filled the structure.
    let usage = unsafe { usage.assume_init() };
    u64::try_from(usage.ru_nivcsw).ok()
}

/// Returns the size of the machine's memory and swap, in bytes.
pub fn memory_bytes() -> Option<usize> {
    let mut info = MaybeUninit::<libc::sysinfo>::uninit();
    // SAFETY: the pointer is to a local variable that has room for the structure.
    let failed = unsafe { libc::sysinfo(info.as_mut_ptr()) } != 0;
    if failed {
        return None;
    }
    // SAFETY: the call has succeeded, so it has filled the structure.
    let info = unsafe { info.assume_init() };
    let units = usize::try_from(info.totalram.saturating_add(info.totalswap)).ok()?;
    Some(units.saturating_mul(usize::try_from(info.mem_unit).ok()?))
}
