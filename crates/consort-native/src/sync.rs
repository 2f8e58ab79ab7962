//! The atomics and threads of the primitives: the real ones, or loom's under `--cfg loom`.

use std::time::Duration;

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, AtomicU64, fence},
    thread::{Thread, current, yield_now},
};

#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicU64, fence},
    thread::{Thread, current, yield_now},
};

/// Sleeps until unparked, or at most for `limit`. A model has no clock: there only an unpark ends
/// the sleep, and a wake-up that is lost is a deadlock.
pub(crate) fn park_at_most(limit: Duration) {
    #[cfg(loom)]
    {
        let _ = limit;
        loom::thread::park();
    }
    #[cfg(not(loom))]
    std::thread::park_timeout(limit);
}
