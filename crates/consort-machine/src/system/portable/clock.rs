//! A clock private to the process.

use std::{sync::OnceLock, time::Instant};

/// Returns nanoseconds since the first call in this process.
pub fn now_ns() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let elapsed = FIRST.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns `None`: unknown.
pub fn suspended_ns() -> Option<u64> {
    None
}

/// Returns `None`: unknown.
pub fn processor_ns() -> Option<u64> {
    None
}
