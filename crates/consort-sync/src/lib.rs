//! Locks and delegation for hot critical sections.
//!
#![doc = include_str!("lib.md")]

#[cfg(test)]
use consort_sandbox as _;

#[cfg(not(loom))]
mod batch;
#[cfg(not(loom))]
mod box_container;
#[cfg(not(loom))]
mod closure;
#[cfg(not(loom))]
mod condvar;
#[cfg(not(loom))]
mod containers;
#[cfg(not(loom))]
mod continuations;
#[cfg(not(loom))]
mod counter;
#[cfg(not(loom))]
mod data;
#[cfg(not(loom))]
mod delegate;
pub mod delegation;
#[cfg(not(loom))]
mod detached;
#[cfg(not(loom))]
mod holder;
pub mod locks;
#[cfg(not(loom))]
mod machine;
#[cfg(not(loom))]
mod mutex;
pub mod objects;
#[cfg(not(loom))]
mod reentrant;
#[cfg(not(loom))]
mod rw_lock;
#[cfg(not(loom))]
mod semaphore;
#[cfg(not(loom))]
mod server;
#[cfg(not(loom))]
mod threads;
#[cfg(not(loom))]
mod timed;
#[cfg(not(loom))]
mod trust;

/// Re-exported in the version whose traits [`Raw`] and the guards implement.
pub use lock_api;
#[cfg(not(loom))]
pub use lock_api::WaitTimeoutResult;
#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
#[cfg(not(loom))]
pub use {
    batch::Batch,
    box_container::BoxContainer,
    condvar::{Condvar, RawCondvar},
    containers::{Queue, Stack},
    continuations::Continuations,
    counter::Counter,
    delegate::Delegate,
    detached::{Pending, PendingFuture},
    mutex::{Held, MappedMutexGuard, Mutex, MutexGuard, Raw},
    reentrant::{MappedReentrantMutexGuard, RawThreadId, ReentrantMutex, ReentrantMutexGuard},
    rw_lock::{
        MappedRwLockReadGuard, MappedRwLockWriteGuard, RawRwLock, RwLock, RwLockReadGuard,
        RwLockUpgradableReadGuard, RwLockWriteGuard,
    },
    semaphore::{Semaphore, SemaphoreGuard},
    server::Server,
    trust::Trust,
};
