//! Segments from the system: mappings without commitment, anonymous or of files in memory.
//!
//! | | private | shared, of a file |
//! | --- | --- | --- |
//! | returning pages | `MADV_DONTNEED` | `MADV_REMOVE` (`MADV_DONTNEED` would only unmap them) |
//! | small pages | `MADV_NOHUGEPAGE` | the same |
//! | large pages | | `MADV_HUGEPAGE`, if the system allows it in `shmem_enabled` |
//! | core files | `MADV_DONTDUMP` at first, `MADV_DODUMP` for the used parts | the same |
//!
//! All mappings begin at a large page, or at a given [`Placement`].
//!
//! A mapping is left out of core files at first. Otherwise the kernel would allocate each page of
//! shared memory that it writes to a core file, and walk through all other pages.

#![expect(unsafe_code, reason = "maps memory")]

use std::{
    ffi::c_void,
    fs::File,
    io,
    os::fd::AsRawFd as _,
    ptr::{NonNull, null_mut},
};

use libc::{
    MADV_DODUMP, MADV_DONTDUMP, MADV_DONTNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_REMOVE,
    MAP_ANONYMOUS, MAP_FAILED, MAP_FIXED, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, PROT_NONE,
    PROT_READ, PROT_WRITE, c_int,
};

use crate::segment::{
    memory_error::out_of_memory,
    origin::Origin,
    page::{LARGE_PAGE, Placement},
};

/// Access to memory that is read and written.
pub(crate) const READ_WRITE: c_int = PROT_READ | PROT_WRITE;

/// Maps a file from an offset on, or memory without a file, and commits nothing.
///
/// # Safety
/// With `MAP_FIXED`, nothing needs what is mapped at these addresses.
pub(crate) unsafe fn mmap(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: Option<(&File, u64)>,
) -> io::Result<*mut c_void> {
    let (anonymous, file, from) = match file {
        None => (MAP_ANONYMOUS, -1, 0),
        Some((file, from)) => (0, file.as_raw_fd(), from),
    };
    let from = from.try_into().map_err(|_| out_of_memory())?;
    // SAFETY: the caller's promise.
    let at =
        unsafe { libc::mmap(at, bytes, access, flags | MAP_NORESERVE | anonymous, file, from) };
    if at == MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at) }
}

pub(crate) fn reserve(bytes: usize, placement: Placement) -> io::Result<NonNull<u8>> {
    let place = AddressRange::of(bytes, placement)?;
    // SAFETY: replaces addresses that have been reserved for it.
    let at = unsafe { mmap(place.at, bytes, READ_WRITE, MAP_PRIVATE | MAP_FIXED, None) }?;
    place.keep();
    kept_out_of_cores(at.cast(), bytes)
}

/// Maps whole pages of a file, shared with all processes that have it.
pub(crate) fn map(
    file: &File,
    at: usize,
    bytes: usize,
    placement: Placement,
) -> io::Result<NonNull<u8>> {
    let place = AddressRange::of(bytes, placement)?;
    let (flags, file) = (MAP_SHARED | MAP_FIXED, Some((file, at as u64)));
    // SAFETY: replaces addresses that have been reserved for it.
    let at = unsafe { mmap(place.at, bytes, READ_WRITE, flags, file) }?;
    place.keep();
    kept_out_of_cores(at.cast(), bytes)
}

/// Returns a new mapping, which is kept out of core files.
fn kept_out_of_cores(at: *mut u8, bytes: usize) -> io::Result<NonNull<u8>> {
    advise(at, bytes, MADV_DONTDUMP);
    NonNull::new(at).ok_or_else(out_of_memory)
}

/// Maps whole pages of a file, shared with all processes that have it, over an existing mapping.
///
/// # Safety
/// Nothing needs what was mapped there, or it has the same contents.
pub(crate) unsafe fn map_over(at: *mut u8, bytes: usize, file: &File, from: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let flags = MAP_SHARED | MAP_FIXED;
    // SAFETY: the caller's promise.
    unsafe { mmap(at.cast(), bytes, READ_WRITE, flags, Some((file, from))) }.map(drop)
}

/// Maps whole pages of a file privately over a shared mapping of the same pages. From then on, what
/// this process writes does not reach other processes. For a forked child.
///
/// # Safety
/// The pages at `at` are those of the file from offset `from` on.
pub(crate) unsafe fn part_from_others(
    at: *mut u8,
    bytes: usize,
    file: &File,
    from: u64,
) -> io::Result<()> {
    let flags = MAP_PRIVATE | MAP_FIXED;
    // SAFETY: the contents are the same, by the caller's promise.
    unsafe { mmap(at.cast(), bytes, READ_WRITE, flags, Some((file, from))) }?;
    keep_out_of_cores(at, bytes);
    Ok(())
}

/// A range of reserved addresses. Dropping it frees them.
struct AddressRange {
    at: *mut c_void,
    bytes: usize,
}

impl AddressRange {
    /// Reserves `bytes` bytes, a whole number of pages.
    fn of(bytes: usize, placement: Placement) -> io::Result<Self> {
        if placement.align > LARGE_PAGE
            && let Ok(place) = Self::at(bytes, placement)
        {
            return Ok(place);
        }
        Self::at(bytes, Placement::ANY)
    }

    fn at(bytes: usize, Placement { align, offset }: Placement) -> io::Result<Self> {
        let all = bytes.checked_add(align).ok_or_else(out_of_memory)?;
        // SAFETY: a new mapping at an address that the system chooses replaces nothing.
        let first = unsafe { mmap(null_mut(), all, PROT_NONE, MAP_PRIVATE, None) }?;
        let before = first.addr().wrapping_add(offset).wrapping_neg() & (align - 1);
        let at = first.wrapping_byte_add(before);
        for (part, bytes) in [(first, before), (at.wrapping_byte_add(bytes), align - before)] {
            if bytes > 0 {
                // SAFETY: a part of what has just been reserved, which nothing uses. A failure only
                // leaves the addresses reserved.
                let _ = unsafe { libc::munmap(part, bytes) };
            }
        }
        Ok(Self { at, bytes })
    }

    /// Leaves the addresses to the mapping that has replaced them.
    fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for AddressRange {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the addresses are only reserved, so nothing uses them.
            let _ = unsafe { libc::munmap(self.at, self.bytes) };
        }
    }
}

/// # Safety
/// `at` is the beginning of a mapping of `bytes` that is no longer used.
pub(crate) unsafe fn release(at: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise. A failure only leaves the mapping behind.
    let _ = unsafe { libc::munmap(at.as_ptr().cast(), bytes) };
}

/// # Safety
/// The bytes are whole pages of a mapping of this origin, which nothing else currently uses.
pub(crate) unsafe fn clear(at: NonNull<u8>, bytes: usize, origin: Origin) {
    let advice = match origin {
        Origin::Private => MADV_DONTNEED,
        Origin::Shared => MADV_REMOVE,
    };
    // SAFETY: the caller's promise. Pages that the system has taken are zero when touched again.
    let failed = unsafe { libc::madvise(at.as_ptr().cast(), bytes, advice) } != 0;
    if failed {
        // The system refuses to take locked pages.
        // SAFETY: the caller's promise.
        unsafe { at.as_ptr().write_bytes(0, bytes) };
    }
}

/// Advises small pages for a part of a mapping. A kernel without large pages refuses, which is
/// harmless.
pub(crate) fn keep_pages_small(at: *mut u8, bytes: usize) {
    advise(at, bytes, MADV_NOHUGEPAGE);
}

/// Allows large pages in a part of a mapping. A kernel that has none, or may not use them, does
/// nothing.
pub(crate) fn let_pages_be_large(at: *mut u8, bytes: usize) {
    advise(at, bytes, MADV_HUGEPAGE);
}

pub(crate) fn put_in_cores(at: *mut u8, bytes: usize) {
    advise(at, bytes, MADV_DODUMP);
}

pub(crate) fn keep_out_of_cores(at: *mut u8, bytes: usize) {
    advise(at, bytes, MADV_DONTDUMP);
}

/// Gives advice that does not change the contents of pages. It is not an error if the kernel
/// refuses it.
fn advise(at: *mut u8, bytes: usize, advice: c_int) {
    // SAFETY: such advice does not change the pages.
    let _ = unsafe { libc::madvise(at.cast(), bytes, advice) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_begins_where_its_placement_says() {
        const BYTES: usize = 3 * LARGE_PAGE;
        for align in [LARGE_PAGE, 4 * LARGE_PAGE, 1 << 30] {
            for offset in [0, LARGE_PAGE, 5 * LARGE_PAGE] {
                let at = reserve(BYTES, Placement { align, offset }).expect("some pages");
                assert!((at.addr().get() + offset).is_multiple_of(align), "{align} {offset}");
                // SAFETY: nothing uses the mapping.
                unsafe { release(at, BYTES) };
            }
        }
    }

    #[test]
    fn mapping_is_at_a_large_page_if_there_is_no_room_for_its_placement() {
        let placement = Placement { align: 1 << 62, offset: 0 };
        let at = reserve(LARGE_PAGE, placement).expect("a page");
        assert!(at.addr().get().is_multiple_of(LARGE_PAGE));
        // SAFETY: nothing uses the mapping.
        unsafe { release(at, LARGE_PAGE) };
    }
}
