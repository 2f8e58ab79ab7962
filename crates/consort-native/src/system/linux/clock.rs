//! A clock that all processes of a machine share.

#![expect(unsafe_code, reason = "asks the system, whose clock `Instant` hides")]

/// Nanoseconds since some moment before the first launch, the same for all processes.
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local variable. The call cannot fail for this clock, so its
    // result is ignored.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    // Neither is negative: the clock starts when the machine boots.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
