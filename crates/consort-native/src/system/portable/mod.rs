//! Any system that the standard library supports.

pub(crate) mod allocator;
pub(crate) mod memory;
pub(crate) mod process;
