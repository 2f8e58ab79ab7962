//! Typed items in a segment. The items keep the segment alive.

#![expect(unsafe_code, reason = "refers to atomics in memory that all PEs reach")]

use std::{ops::Deref, sync::Arc};

use super::reservation::Segment;
use crate::inbox::line::LineWord;

/// A type whose items may be in a segment.
///
/// # Safety
/// Any bytes are a valid value, because another process may have written anything. The type
/// consists only of atomics and padding, so a reference to it does not exclude writes by others.
pub(crate) unsafe trait SegmentItem {}

// SAFETY: an atomic integer. Loom's atomics contain more, but loom models create no segments.
unsafe impl SegmentItem for LineWord {}

pub(crate) struct SegmentSlice<T> {
    items: *const [T],
    _segment: Arc<Segment>,
}

pub(crate) struct SegmentRef<T>(SegmentSlice<T>);

pub(crate) type SegmentWords = SegmentSlice<LineWord>;

// SAFETY: the items are atomics in a segment, which is `Send` and `Sync` itself.
unsafe impl<T: SegmentItem> Send for SegmentSlice<T> {}
// SAFETY: as above.
unsafe impl<T: SegmentItem> Sync for SegmentSlice<T> {}

impl<T: SegmentItem> SegmentSlice<T> {
    /// Returns the `count` items from `offset` on.
    ///
    /// # Panics
    /// When they reach beyond the end of the segment, or are not aligned.
    pub(crate) fn new(segment: &Arc<Segment>, offset: usize, count: usize) -> Self {
        let bytes = count.checked_mul(size_of::<T>()).expect("items that lie in memory");
        let at = segment.at(offset, bytes).cast::<T>();
        assert!(at.is_aligned(), "items begin where they may");
        Self { items: std::ptr::slice_from_raw_parts(at, count), _segment: Arc::clone(segment) }
    }
}

impl<T: SegmentItem> Deref for SegmentSlice<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: inside the segment and aligned, as `new` has asserted. Any bytes are valid items,
        // by the promise of `SegmentItem`. By invariant 2 of segments, all other references are to
        // atomics too.
        unsafe { &*self.items }
    }
}

impl<T: SegmentItem> SegmentRef<T> {
    /// Returns the item at `offset`.
    ///
    /// # Panics
    /// When the item is not inside the segment, or not aligned.
    pub(crate) fn new(segment: &Arc<Segment>, offset: usize) -> Self {
        Self(SegmentSlice::new(segment, offset, 1))
    }
}

impl<T: SegmentItem> Deref for SegmentRef<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: as for a `SegmentSlice` with this item alone.
        unsafe { &*self.0.items.cast::<T>() }
    }
}
