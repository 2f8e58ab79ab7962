//! Linux implementations.

pub mod affinity;
pub mod clock;
#[cfg(not(loom))]
pub mod fence;
pub mod fork;
#[cfg(not(loom))]
pub mod futex;
mod library;
pub mod signals;
#[cfg(not(loom))]
pub mod slice;
#[cfg(not(loom))]
pub mod thread_exit;
pub mod usage;
