//! Segments: memory that is reserved as a whole and used page by page.
//!
//! The SAFETY comments refer to these invariants by number:
//! 1. `base` is the beginning of `bytes` initialized bytes, aligned to a page, which live as long
//!    as the segment.
//! 2. References into the bytes refer only to atomics. Code that uses an address ensures that other
//!    code accesses the bytes atomically too, or not at all.

#![expect(unsafe_code, reason = "owns raw memory that all PEs reach")]

use std::{
    fmt,
    fs::File,
    io,
    ops::Range,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::NonNull,
    sync::Arc,
};

use super::{
    memory_error::{MemoryError, out_of_memory},
    origin::Origin,
    page::{PAGE, Placement},
    shared::BackingPages,
};
use crate::system::{memory, process};

/// Memory that all PEs of a job access.
pub(crate) struct Segment {
    base: NonNull<u8>,
    bytes: usize,
    origin: Origin,
    /// The file pages that back the segment, if other processes can map it. Dropped before the
    /// memory is released.
    shared: Option<BackingPages>,
    /// Dropped after the memory is released.
    _on_release: Option<OnRelease>,
}

/// A value to drop after a process has released a segment that others use.
pub(crate) type OnRelease = Box<dyn Send + Sync + UnwindSafe + RefUnwindSafe>;

// SAFETY: by invariant 2 references are to atomics, and holding an address is safe.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Reserves `bytes` zeros for `object`, rounded up to whole pages.
    ///
    /// # Errors
    /// When the system does not provide them, or for the reasons of [`Segment::map`].
    pub(crate) fn reserve(
        bytes: usize,
        origin: Origin,
        object: &str,
    ) -> Result<Self, Box<MemoryError>> {
        Self::reserve_at(Placement::ANY, bytes, origin, object)
    }

    /// Like [`Segment::reserve`], at addresses that fit `placement`.
    ///
    /// # Errors
    /// Same as [`Segment::reserve`].
    pub(crate) fn reserve_at(
        placement: Placement,
        bytes: usize,
        origin: Origin,
        object: &str,
    ) -> Result<Self, Box<MemoryError>> {
        let requested = bytes;
        let refused = |error: &io::Error| MemoryError::of("mmap", object, requested, error);
        let whole = bytes.checked_next_multiple_of(PAGE);
        let bytes = whole.ok_or_else(|| refused(&out_of_memory()))?;
        if origin == Origin::Shared {
            let file = process::memory_file();
            let file = file.map_err(|error| MemoryError::of("memfd_create", object, 0, &error))?;
            process::extend(&file, bytes as u64)
                .map_err(|error| MemoryError::of("ftruncate", object, requested, &error))?;
            return Self::map_at(placement, &Arc::new(file), 0, bytes, object, None);
        }
        let base = memory::reserve(bytes, placement).map_err(|error| refused(&error))?;
        Ok(Self { base, bytes, origin, shared: None, _on_release: None })
    }

    /// Maps `bytes` of a file, starting at offset `at`, for `object`. Both are whole pages.
    ///
    /// # Errors
    /// When the system does not map them, or the file is too short.
    pub(crate) fn map(
        file: &Arc<File>,
        at: usize,
        bytes: usize,
        object: &str,
        on_release: Option<OnRelease>,
    ) -> Result<Self, Box<MemoryError>> {
        Self::map_at(Placement::ANY, file, at, bytes, object, on_release)
    }

    /// Like [`Segment::map`], at addresses that fit `placement`.
    ///
    /// # Errors
    /// Same as [`Segment::map`].
    pub(crate) fn map_at(
        placement: Placement,
        file: &Arc<File>,
        at: usize,
        bytes: usize,
        object: &str,
        on_release: Option<OnRelease>,
    ) -> Result<Self, Box<MemoryError>> {
        let refused = |error: &io::Error| MemoryError::of("mmap", object, bytes, error);
        let is_whole = [at, bytes].iter().all(|size| size.is_multiple_of(PAGE)) && bytes > 0;
        let end = at.checked_add(bytes).and_then(|end| u64::try_from(end).ok());
        let is_there = |end| file.metadata().is_ok_and(|about| about.len() >= end);
        if !is_whole || !end.is_some_and(is_there) {
            return Err(refused(&io::Error::other("the file of shared memory is shorter")));
        }
        let base = memory::map(file, at, bytes, placement).map_err(|error| refused(&error))?;
        let shared = Some(BackingPages::new(base, bytes, Arc::clone(file), at as u64));
        Ok(Self { base, bytes, origin: Origin::Shared, shared, _on_release: on_release })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the address of the `bytes` bytes at `offset`.
    ///
    /// # Panics
    /// When they reach beyond the end of the segment.
    #[inline(always)]
    pub(crate) fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(inside, "a place must lie in its segment");
        self.base.as_ptr().wrapping_add(offset)
    }

    /// Returns whether this is a forked child, whose segment is a copy of shared memory.
    pub(crate) fn is_copy(&self) -> bool {
        self.shared.as_ref().is_some_and(BackingPages::is_copy)
    }

    /// Returns the offset of an address that [`Segment::at`] returned, or of a byte after it.
    pub(crate) fn offset_of(&self, at: *mut u8) -> usize {
        at.addr().wrapping_sub(self.base.addr().get())
    }

    /// Clears whole pages and returns them to the system.
    ///
    /// # Safety
    /// Nothing else uses the pages until this returns.
    ///
    /// # Panics
    /// When the range is not whole pages of the segment.
    pub(crate) unsafe fn clear(&self, Range { start, end }: Range<usize>) {
        assert!(start.is_multiple_of(PAGE) && end.is_multiple_of(PAGE), "whole pages are cleared");
        if let Some(at) = NonNull::new(self.at(start, end - start)) {
            // SAFETY: inside the segment, as `at` has asserted; of this origin; and nothing else
            // uses these pages, by the caller's promise.
            unsafe { memory::clear(at, end - start, self.origin) };
        }
    }

    /// Maps the first `bytes` of a file over whole pages of the segment, from offset `at` on. A
    /// forked child does not get these pages, but those that the segment had before.
    ///
    /// # Errors
    /// When the system does not map them.
    ///
    /// # Safety
    /// Nothing else uses these pages of the segment until this returns. The file never becomes
    /// shorter.
    ///
    /// # Panics
    /// When the segment has no such pages.
    pub(crate) unsafe fn place(&self, at: usize, bytes: usize, file: &File) -> io::Result<()> {
        assert!(at.is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE), "whole pages are mapped");
        // SAFETY: whole pages of the segment. Everything else is the caller's promise.
        unsafe { memory::map_over(self.at(at, bytes), bytes, file, 0) }?;
        self.keep_out_of_cores(at..at + bytes);
        Ok(())
    }

    /// Includes a part in core files. The part is rounded to whole pages inside of the segment.
    pub(crate) fn put_in_cores(&self, Range { start, end }: Range<usize>) {
        let start = start / PAGE * PAGE;
        let end = end.next_multiple_of(PAGE).min(self.bytes);
        if start < end {
            memory::put_in_cores(self.at(start, end - start), end - start);
        }
    }

    /// Keeps whole pages out of core files.
    pub(crate) fn keep_out_of_cores(&self, Range { start, end }: Range<usize>) {
        if start < end {
            memory::keep_out_of_cores(self.at(start, end - start), end - start);
        }
    }

    /// Advises small pages, for a large part that is only touched sparsely.
    pub(crate) fn keep_pages_small(&self, Range { start, end }: Range<usize>) {
        memory::keep_pages_small(self.at(start, end - start), end - start);
    }

    /// Allows large pages, for a part that is copied in large pieces.
    pub(crate) fn let_pages_be_large(&self, Range { start, end }: Range<usize>) {
        memory::let_pages_be_large(self.at(start, end - start), end - start);
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        drop(self.shared.take());
        // SAFETY: reserved with this size, and released only here.
        unsafe { memory::release(self.base, self.bytes) };
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, origin, .. } = self;
        f.debug_struct("Segment")
            .field("bytes", bytes)
            .field("origin", origin)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::slice::SegmentWords, *};
    use std::sync::{Arc, atomic::Ordering::Relaxed};

    /// Returns a segment for every origin that this system supports.
    fn segments(pages: usize) -> impl Iterator<Item = Arc<Segment>> {
        let reserve =
            move |origin| Segment::reserve(pages * PAGE, origin, "a test").expect("some pages");
        origins().map(move |origin| Arc::new(reserve(origin)))
    }

    /// Returns the origins that this system supports. Only Linux has shared segments.
    fn origins() -> impl Iterator<Item = Origin> {
        Origin::EVERY.into_iter().take(if consort_machine::system::IS_LINUX { 2 } else { 1 })
    }

    #[test]
    fn pages_are_zero_at_first_and_when_they_have_been_cleared() {
        for segment in segments(3) {
            let words = SegmentWords::new(&segment, PAGE, 2 * PAGE / 8);
            assert!(words.iter().all(|word| word.load(Relaxed) == 0));
            words.iter().for_each(|word| word.store(7, Relaxed));
            // SAFETY: only this thread knows of the segment.
            unsafe { segment.clear(2 * PAGE..3 * PAGE) };
            let (kept, cleared) = words.split_at(PAGE / 8);
            assert!(kept.iter().all(|word| word.load(Relaxed) == 7));
            assert!(cleared.iter().all(|word| word.load(Relaxed) == 0));
        }
    }

    /// Tests locked pages, like those of a program that calls `mlockall`.
    #[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
    #[test]
    fn pages_that_are_locked_are_cleared_too() {
        for segment in segments(1) {
            let words = SegmentWords::new(&segment, 0, PAGE / 8);
            words.iter().for_each(|word| word.store(7, Relaxed));
            let at = segment.at(0, PAGE).cast();
            // SAFETY: a page of the segment, whose contents do not change.
            unsafe { rustix::mm::mlock(at, PAGE) }.expect("a page is locked");
            // SAFETY: only this thread knows of the segment.
            unsafe { segment.clear(0..PAGE) };
            assert!(words.iter().all(|word| word.load(Relaxed) == 0));
        }
    }

    #[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
    #[test]
    fn pages_that_are_cleared_are_given_back() {
        const PAGES: usize = 16 << 10;
        let resident = || {
            let statm = std::fs::read_to_string("/proc/self/statm").expect("the system says");
            statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
        };
        for segment in segments(PAGES) {
            let words = SegmentWords::new(&segment, 0, PAGES * PAGE / 8);
            let before: usize = resident();
            words.iter().step_by(PAGE / 8).for_each(|word| word.store(7, Relaxed));
            assert!(resident() > before + PAGES / 2);
            // SAFETY: only this thread knows of the segment.
            unsafe { segment.clear(0..PAGES * PAGE) };
            assert!(resident() < before + PAGES / 2, "{segment:?}");
        }
    }

    #[test]
    fn oversized_reservation_is_refused() {
        for origin in origins() {
            for bytes in [usize::MAX, usize::MAX - PAGE] {
                let error = Segment::reserve(bytes, origin, "a test").expect_err("no memory");
                let text = error.to_string();
                assert!(text.contains(&format!("{bytes} bytes for a test")), "{text}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "a place must lie in its segment")]
    fn place_outside_its_segment_panics() {
        let segment = Segment::reserve(PAGE, Origin::Private, "a test").expect("a page");
        segment.at(PAGE - 4, 5);
    }
}
