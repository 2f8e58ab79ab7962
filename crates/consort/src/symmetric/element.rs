//! What symmetric memory holds.

use consort_fabric::Pod;
use consort_native::BLOCK_ALIGN;

/// What symmetric memory may hold: plain data that needs no more alignment than a cache line.
pub trait Element: Pod {
    /// Checked where memory is allocated.
    const FITS: () = assert!(align_of::<Self>() <= BLOCK_ALIGN, "over-aligned elements");
}

impl<T: Pod> Element for T {}
