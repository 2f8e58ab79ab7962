//! Locks and delegation for hot critical sections.
//!
#![doc = include_str!("lib.md")]

#[cfg(not(loom))]
mod closure;
#[cfg(not(loom))]
mod delegate;
pub mod delegation;
pub mod locks;
#[cfg(not(loom))]
mod machine;
#[cfg(not(loom))]
mod mutex;
pub mod objects;
#[cfg(not(loom))]
mod threads;

#[cfg(not(loom))]
pub use {
    delegate::{Delegate, Server},
    mutex::{Held, Mutex, MutexGuard, Raw},
};
