//! The atomics and threads of the primitives: the real ones, or loom's under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, AtomicU64, fence},
    thread::{Thread, current},
};

#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicU64, fence},
    thread::{Thread, current},
};
