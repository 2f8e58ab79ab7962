//! On any system that the standard library knows.

pub(crate) mod allocator;
pub(crate) mod memory;
pub(crate) mod process;
