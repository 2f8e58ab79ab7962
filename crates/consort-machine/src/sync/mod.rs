//! The atomics and threads of the primitives: the real ones, or loom's under `--cfg loom`.

pub mod asymmetric;
pub mod biased_mutex;
pub mod futex;

#[cfg(loom)]
pub use loom::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicU64, fence},
    },
    thread::yield_now,
};

#[cfg(not(loom))]
pub use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicU64, fence},
    },
    thread::yield_now,
};
