//! The element types of symmetric memory.

use consort_fabric::Pod;
use consort_native::BLOCK_ALIGN;

/// A type that symmetric memory may hold: plain data that needs no more alignment than a cache
/// line.
pub trait Element: Pod {
    /// Checks the alignment, at compile time, where memory is allocated.
    const FITS: () = assert!(align_of::<Self>() <= BLOCK_ALIGN, "over-aligned elements");
}

impl<T: Pod> Element for T {}
