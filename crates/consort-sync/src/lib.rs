//! Locks and delegation for hot critical sections.
//!
#![doc = include_str!("lib.md")]

pub mod locks;
#[cfg(not(loom))]
mod mutex;

#[cfg(not(loom))]
pub use mutex::{Held, Mutex, MutexGuard, Raw};
