//! Items that lie in a segment, which lives as long.

#![expect(unsafe_code, reason = "refers to atomics in memory that all PEs reach")]

use std::{ops::Deref, sync::Arc};

use super::reservation::Segment;
use crate::inbox::line::LineWord;

/// What may lie in a segment.
///
/// # Safety
/// Any bytes are a valid value, since another process may have written anything, and all of it is
/// atomics, or padding: so a reference to it says nothing of who else writes there.
pub(crate) unsafe trait Flat {}

// SAFETY: an integer that is an atomic; loom's is more, but models make no segments.
unsafe impl Flat for LineWord {}

/// Some items in a row.
pub(crate) struct Part<T> {
    items: *const [T],
    _segment: Arc<Segment>,
}

/// One item.
pub(crate) struct Single<T>(Part<T>);

/// Some words in a row.
pub(crate) type Words = Part<LineWord>;

// SAFETY: they are atomics in a segment, which is `Send` and `Sync` itself.
unsafe impl<T: Flat> Send for Part<T> {}
// SAFETY: as above.
unsafe impl<T: Flat> Sync for Part<T> {}

impl<T: Flat> Part<T> {
    /// The items from `offset` on.
    ///
    /// # Panics
    /// When they are not all inside, or not aligned.
    pub(crate) fn new(segment: &Arc<Segment>, offset: usize, count: usize) -> Self {
        let bytes = count.checked_mul(size_of::<T>()).expect("items that lie in memory");
        let at = segment.at(offset, bytes).cast::<T>();
        assert!(at.is_aligned(), "items begin where they may");
        Self { items: std::ptr::slice_from_raw_parts(at, count), _segment: Arc::clone(segment) }
    }
}

impl<T: Flat> Deref for Part<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: inside the segment and aligned, as `new` has seen; any bytes are items, by the
        // promise of `Flat`; by invariant 2 of segments nobody refers to them otherwise.
        unsafe { &*self.items }
    }
}

impl<T: Flat> Single<T> {
    /// The item at `offset`.
    ///
    /// # Panics
    /// When it is not inside, or not aligned.
    pub(crate) fn new(segment: &Arc<Segment>, offset: usize) -> Self {
        Self(Part::new(segment, offset, 1))
    }
}

impl<T: Flat> Deref for Single<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: as for a `Part`, of which this is the first and only item.
        unsafe { &*self.0.items.cast::<T>() }
    }
}
