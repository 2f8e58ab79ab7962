//! The atomics and threads of the primitives: the real ones, or loom's under `--cfg loom`.

pub(crate) mod asymmetric;
pub(crate) mod biased;
pub(crate) mod futex;

#[cfg(loom)]
pub(crate) use loom::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicU64, fence},
    },
    thread::yield_now,
};

#[cfg(not(loom))]
pub(crate) use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicU64, fence},
    },
    thread::yield_now,
};
