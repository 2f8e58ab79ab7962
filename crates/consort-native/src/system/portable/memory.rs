//! Segments from the allocator, which provides large regions with a small alignment without
//! touching them.

#![expect(unsafe_code, reason = "allocates memory")]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    fs::File,
    io,
    ptr::NonNull,
};

use crate::segment::{
    memory_error::out_of_memory,
    origin::Origin,
    page::{PAGE, Placement},
};

/// Returns a layout with room for the allocation's address before the first page.
fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(PAGE + size_of::<usize>())?, 16).ok()
}

pub(crate) fn reserve(bytes: usize, _: Placement) -> io::Result<NonNull<u8>> {
    let layout = layout(bytes).ok_or_else(out_of_memory)?;
    // SAFETY: the layout's size is at least a page.
    let allocated = unsafe { alloc_zeroed(layout) };
    if allocated.is_null() {
        return Err(out_of_memory());
    }
    let after = allocated.wrapping_add(size_of::<usize>());
    let base = after.wrapping_add(after.align_offset(PAGE));
    let note = base.wrapping_sub(size_of::<*mut u8>()).cast::<*mut u8>();
    // SAFETY: there is room for an address between the allocation's beginning and the first page,
    // because `after` skips it. Pages are aligned for an address.
    unsafe { note.write(allocated) };
    NonNull::new(base).ok_or_else(out_of_memory)
}

/// Fails: there is no memory that processes share.
pub(crate) fn map(_: &File, _: usize, _: usize, _: Placement) -> io::Result<NonNull<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Like [`map`].
///
/// # Safety
/// None.
pub(crate) unsafe fn map_over(_: *mut u8, _: usize, _: &File, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Like [`map`].
///
/// # Safety
/// None.
pub(crate) unsafe fn part_from_others(_: *mut u8, _: usize, _: &File, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// # Safety
/// `at` is the base of a segment of `bytes` that is no longer used.
pub(crate) unsafe fn release(at: NonNull<u8>, bytes: usize) {
    let note = at.as_ptr().wrapping_sub(size_of::<*mut u8>()).cast::<*mut u8>();
    // SAFETY: `reserve` wrote the address there.
    let allocated = unsafe { note.read() };
    if let Some(layout) = layout(bytes) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(allocated, layout) };
    }
}

/// # Safety
/// The bytes are part of a segment, and nothing else currently uses them.
pub(crate) unsafe fn clear(at: NonNull<u8>, bytes: usize, _: Origin) {
    // SAFETY: the caller's promise.
    unsafe { at.as_ptr().write_bytes(0, bytes) };
}

/// Does nothing: the allocator has no pages to advise on.
pub(crate) fn keep_pages_small(_: *mut u8, _: usize) {}

/// Does nothing, like [`keep_pages_small`].
pub(crate) fn let_pages_be_large(_: *mut u8, _: usize) {}

/// Does nothing: the system decides what core files contain.
pub(crate) fn put_in_cores(_: *mut u8, _: usize) {}

/// Does nothing, like [`put_in_cores`].
pub(crate) fn keep_out_of_cores(_: *mut u8, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_at_first_and_when_it_has_been_cleared() {
        let bytes = 2 * PAGE;
        let at = reserve(bytes, Placement::ANY).expect("two pages");
        assert!(at.addr().get().is_multiple_of(PAGE));
        // SAFETY: `bytes` bytes that this test owns, as in all blocks below.
        let all = || unsafe { std::slice::from_raw_parts(at.as_ptr(), bytes) };
        let sum = || all().iter().map(|&byte| u32::from(byte)).sum::<u32>();
        assert_eq!(sum(), 0);
        // SAFETY: as above.
        unsafe { at.as_ptr().write_bytes(1, bytes) };
        // SAFETY: as above.
        unsafe { clear(at, PAGE, Origin::Private) };
        assert_eq!(sum(), 4096);
        // SAFETY: nothing uses the memory any more.
        unsafe { release(at, bytes) };
    }

    #[test]
    fn oversized_reservation_is_refused() {
        assert!(reserve(usize::MAX - PAGE, Placement::ANY).is_err());
    }
}
