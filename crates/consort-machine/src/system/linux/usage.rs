//! Preemptions, processor time, suspension and the size of memory, as the system reports them.

#![expect(unsafe_code, reason = "makes a system call that fills a structure")]

use std::{mem::MaybeUninit, time::Duration};

use super::clock::read_ns;

/// Returns how often the calling thread was preempted; `None` if the system does not report it.
#[must_use]
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

/// Returns how long the machine has been suspended since it booted; `None` if the system does not
/// report it. The clock that measures times stands still during suspension.
#[must_use]
pub fn suspended() -> Option<Duration> {
    // Of two clocks, one stops during suspension.
    let awake_ns = read_ns(libc::CLOCK_MONOTONIC);
    let all_ns = read_ns(libc::CLOCK_BOOTTIME);
    Some(Duration::from_nanos(all_ns.saturating_sub(awake_ns)))
}

/// Returns the processor time of all threads of this process, including those that have ended;
/// `None` if the system does not report it.
#[must_use]
pub fn processor_time() -> Option<Duration> {
    Some(Duration::from_nanos(read_ns(libc::CLOCK_PROCESS_CPUTIME_ID)))
}

/// Returns the size of the machine's memory and swap, in bytes; `None` if the system does not
/// report it.
#[must_use]
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
