//! Linux.

pub(crate) mod allocator;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod socket;
pub(crate) mod watch;
