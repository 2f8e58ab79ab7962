//! On Linux.

pub(crate) mod affinity;
pub(crate) mod allocator;
pub(crate) mod clock;
#[cfg(not(loom))]
pub(crate) mod fence;
pub(crate) mod fork;
#[cfg(not(loom))]
pub(crate) mod futex;
mod library;
pub(crate) mod memory;
pub(crate) mod process;
#[cfg(not(loom))]
pub(crate) mod thread_end;
pub(crate) mod usage;
