//! Nothing is known of limits.

use std::io;

/// Unknown.
pub(crate) fn address_space_left() -> Option<usize> {
    None
}

/// Address space that an allocator takes for a thread: unknown.
pub(crate) const ARENA: usize = 0;

/// Nothing is known of the allocator.
pub(crate) fn share_arena() {}

/// What to do when the system has refused memory.
pub(crate) fn advice(_: &io::Error, _: usize) -> String {
    "ask for less symmetric memory or fewer PEs".to_owned()
}
