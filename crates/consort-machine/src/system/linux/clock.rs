//! A clock that all processes of a machine share.

#![expect(unsafe_code, reason = "reads the system's clock, which `Instant` hides")]

/// Returns nanoseconds since a moment before the first launch, the same for all processes.
pub fn now_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Reads a clock that the system always has.
pub(super) fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local variable. The call cannot fail for these clocks, so its
    // result is ignored.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    // Neither is negative: the clocks start when the machine boots or when the process starts.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
