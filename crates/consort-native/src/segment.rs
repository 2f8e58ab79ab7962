//! The memory that the PEs of a job share: one piece, in which places are told by their offsets;
//! and a PE's own for partial results.
//!
//! It is reserved as a whole and zero. The system gives its pages as they are touched, and takes
//! back those that are cleared. On Linux it is a mapping without commitment (`MAP_NORESERVE`),
//! since a job reserves far more than it uses; elsewhere it comes from the allocator.
//!
//! Invariants, by number, which the unsafe lines answer:
//! 1. `base` is the beginning of `bytes` initialized bytes, aligned to a page, which live as long
//!    as the segment does.
//! 2. Nobody makes a reference into them but to atomics. Whoever uses an address sees to it that
//!    others access the bytes atomically too, or not at all.

#![expect(unsafe_code, reason = "owns raw memory that all PEs reach")]

use std::{
    fmt,
    ops::{Deref, Range},
    ptr::NonNull,
    sync::Arc,
};

use crate::line::LineWord;

/// What the parts of a segment begin and end at, so that a page belongs to one of them.
pub(crate) const PAGE: usize = 4096;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Memory that all PEs of a job reach.
pub(crate) struct Segment {
    base: NonNull<u8>,
    bytes: usize,
    /// Gives it back.
    release: unsafe fn(NonNull<u8>, usize),
    /// Makes pages of it zero.
    clear: unsafe fn(NonNull<u8>, usize),
}

// SAFETY: by invariant 2 references are to atomics, and an address is safe to have.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// So many bytes of zeros, whole pages. `None` if the system does not give them.
    pub(crate) fn reserve(bytes: usize) -> Option<Self> {
        let bytes = bytes.checked_next_multiple_of(PAGE)?;
        #[cfg(all(target_os = "linux", not(miri)))]
        return mapped::reserve(bytes);
        #[cfg(any(not(target_os = "linux"), miri))]
        return allocated::reserve(bytes);
    }

    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of `bytes` bytes from `offset` on.
    ///
    /// # Panics
    /// When they are not all inside.
    #[inline(always)]
    pub(crate) fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(inside, "a place must lie in its segment");
        self.base.as_ptr().wrapping_add(offset)
    }

    /// Makes whole pages zero and gives them back to the system.
    ///
    /// # Safety
    /// Nobody else uses them until it returns.
    ///
    /// # Panics
    /// When they are not whole pages inside.
    pub(crate) unsafe fn clear(&self, Range { start, end }: Range<usize>) {
        assert!(start.is_multiple_of(PAGE) && end.is_multiple_of(PAGE), "whole pages are cleared");
        if let Some(at) = NonNull::new(self.at(start, end - start)) {
            // SAFETY: they are inside, by the line above, and nobody else uses them, by the
            // caller's promise; the function is that of this segment's own kind.
            unsafe { (self.clear)(at, end - start) };
        }
    }

    /// Asks for small pages where little of a large part is touched, whatever the system prefers.
    pub(crate) fn keep_pages_small(&self, Range { start, end }: Range<usize>) {
        let at = self.at(start, end - start);
        #[cfg(all(target_os = "linux", not(miri)))]
        mapped::keep_pages_small(at, end - start);
        #[cfg(any(not(target_os = "linux"), miri))]
        let _ = at;
    }

    /// The words from `offset` on.
    pub(crate) fn words(self: &Arc<Self>, offset: usize, count: usize) -> Words {
        assert!(offset.is_multiple_of(PAGE), "words begin on a page");
        let at = self.at(offset, count * WORD).cast::<LineWord>();
        Words { words: std::ptr::slice_from_raw_parts(at, count), _segment: Arc::clone(self) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: reserved by the same kind, with so many bytes, and released once, here.
        unsafe { (self.release)(self.base, self.bytes) };
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Some words of a segment, which lives as long.
pub(crate) struct Words {
    words: *const [LineWord],
    _segment: Arc<Segment>,
}

// SAFETY: they are atomics in a segment, which is `Send` and `Sync` itself.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Deref for Words {
    type Target = [LineWord];

    #[inline(always)]
    fn deref(&self) -> &[LineWord] {
        // SAFETY: inside the segment, as `Segment::words` has seen, and aligned to a page; any
        // bytes are atomic words; by invariant 2 nobody refers to them otherwise.
        unsafe { &*self.words }
    }
}

/// Memory of the system's, by pages.
#[cfg(all(target_os = "linux", not(miri)))]
mod mapped {
    use std::ptr::{NonNull, null_mut};

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use super::Segment;

    pub(super) fn reserve(bytes: usize) -> Option<Segment> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, wherever there is room, replaces none.
        let at = unsafe { mmap_anonymous(null_mut(), bytes, access, flags) }.ok()?;
        Some(Segment { base: NonNull::new(at.cast())?, bytes, release, clear })
    }

    /// # Safety
    /// `at` is the beginning of a mapping of `bytes`, which nobody uses any more.
    unsafe fn release(at: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise. That it may fail leaves a mapping behind, and nothing else.
        let _ = unsafe { munmap(at.as_ptr().cast(), bytes) };
    }

    /// # Safety
    /// They are whole pages of a mapping, which nobody uses now.
    unsafe fn clear(at: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise: pages of a private mapping are zero when touched again.
        let done = unsafe { madvise(at.as_ptr().cast(), bytes, Advice::LinuxDontNeed) };
        if done.is_err() {
            // The system keeps pages that are locked.
            // SAFETY: the caller's promise.
            unsafe { at.as_ptr().write_bytes(0, bytes) };
        }
    }

    /// The pages are some of a mapping's. A kernel without large pages refuses, and need not do
    /// anything.
    pub(super) fn keep_pages_small(at: *mut u8, bytes: usize) {
        // SAFETY: advice about pages changes nothing in them.
        let _ = unsafe { madvise(at.cast(), bytes, Advice::LinuxNoHugepage) };
    }
}

/// Memory of the allocator's. It gives large pieces of small alignment without touching them.
#[cfg(any(test, not(target_os = "linux"), miri))]
mod allocated {
    use std::{
        alloc::{Layout, alloc_zeroed, dealloc},
        ptr::NonNull,
    };

    use super::{PAGE, Segment};

    /// With room for the address of the allocation before the first page.
    fn layout(bytes: usize) -> Option<Layout> {
        Layout::from_size_align(bytes.checked_add(PAGE + size_of::<usize>())?, 16).ok()
    }

    pub(super) fn reserve(bytes: usize) -> Option<Segment> {
        // SAFETY: the layout's size is a page at least.
        let allocated = NonNull::new(unsafe { alloc_zeroed(layout(bytes)?) })?.as_ptr();
        let after = allocated.wrapping_add(size_of::<usize>());
        let base = after.wrapping_add(after.align_offset(PAGE));
        let note = base.wrapping_sub(size_of::<*mut u8>()).cast::<*mut u8>();
        // SAFETY: between the allocation's beginning and the first page there is room for an
        // address, as the line before the last has seen to, and pages are aligned for it.
        unsafe { note.write(allocated) };
        Some(Segment { base: NonNull::new(base)?, bytes, release, clear })
    }

    /// # Safety
    /// `at` is the base of a segment of `bytes`, which nobody uses any more.
    unsafe fn release(at: NonNull<u8>, bytes: usize) {
        let note = at.as_ptr().wrapping_sub(size_of::<*mut u8>()).cast::<*mut u8>();
        // SAFETY: `reserve` wrote it there.
        let allocated = unsafe { note.read() };
        if let Some(layout) = layout(bytes) {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(allocated, layout) };
        }
    }

    /// # Safety
    /// They are bytes of a segment, which nobody uses now.
    unsafe fn clear(at: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { at.as_ptr().write_bytes(0, bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn pages_are_zero_at_first_and_when_they_have_been_cleared() {
        for reserve in [Segment::reserve, allocated::reserve] {
            let segment = Arc::new(reserve(3 * PAGE).expect("three pages"));
            let words = segment.words(PAGE, 2 * PAGE / WORD);
            assert!(words.iter().all(|word| word.load(Relaxed) == 0));
            words.iter().for_each(|word| word.store(7, Relaxed));
            // SAFETY: nobody but this thread knows of the segment.
            unsafe { segment.clear(2 * PAGE..3 * PAGE) };
            let (kept, cleared) = words.split_at(PAGE / WORD);
            assert!(kept.iter().all(|word| word.load(Relaxed) == 7));
            assert!(cleared.iter().all(|word| word.load(Relaxed) == 0));
        }
    }

    /// As `mlockall` locks all pages of a program.
    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn pages_that_are_locked_are_cleared_too() {
        let segment = Arc::new(Segment::reserve(PAGE).expect("a page"));
        let words = segment.words(0, PAGE / WORD);
        words.iter().for_each(|word| word.store(7, Relaxed));
        // SAFETY: a page of the segment, whose content stays what it is.
        unsafe { rustix::mm::mlock(segment.at(0, PAGE).cast(), PAGE) }.expect("a page is locked");
        // SAFETY: nobody but this thread knows of the segment.
        unsafe { segment.clear(0..PAGE) };
        assert!(words.iter().all(|word| word.load(Relaxed) == 0));
    }

    #[test]
    fn what_is_too_large_is_refused() {
        assert!(Segment::reserve(usize::MAX).is_none());
        assert!(Segment::reserve(usize::MAX - PAGE).is_none());
        assert!(allocated::reserve(usize::MAX - PAGE).is_none());
    }

    #[test]
    #[should_panic(expected = "a place must lie in its segment")]
    fn places_lie_inside() {
        let segment = Segment::reserve(PAGE).expect("a page");
        segment.at(PAGE - 4, 5);
    }
}
