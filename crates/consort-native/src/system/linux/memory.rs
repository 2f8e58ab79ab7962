//! Segments from the system: mappings without commitment, anonymous or of files in memory.
//!
//! | | private | shared, of a file |
//! | --- | --- | --- |
//! | returning pages | `MADV_DONTNEED` | `MADV_REMOVE` (`MADV_DONTNEED` would only unmap them) |
//! | small pages | `MADV_NOHUGEPAGE` | the same |
//! | large pages | | `MADV_HUGEPAGE`, if the system allows it in `shmem_enabled` |
//! | core files | `MADV_DONTDUMP` at first, `MADV_DODUMP` for what is used | the same |
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
    ptr::{NonNull, null_mut},
};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::segment::{
    no_memory::out_of_memory,
    origin::Origin,
    page::{LARGE_PAGE, Placement},
};

pub(crate) fn reserve(bytes: usize, placement: Placement) -> io::Result<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    let place = Place::of(bytes, placement)?;
    // SAFETY: replaces addresses that have been reserved for it.
    let at = unsafe { mmap_anonymous(place.at, bytes, access, flags) }?;
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
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::NORESERVE | MapFlags::FIXED;
    let place = Place::of(bytes, placement)?;
    // SAFETY: replaces addresses that have been reserved for it.
    let at = unsafe { mmap(place.at, bytes, access, flags, file, at as u64) }?;
    place.keep();
    kept_out_of_cores(at.cast(), bytes)
}

/// Returns a new mapping, which is kept out of core files.
fn kept_out_of_cores(at: *mut u8, bytes: usize) -> io::Result<NonNull<u8>> {
    advise(at, bytes, Advice::LinuxDontDump);
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
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: the caller's promise.
    unsafe { mmap(at.cast(), bytes, access, flags, file, from) }?;
    Ok(())
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
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: the contents are the same, by the caller's promise.
    unsafe { mmap(at.cast(), bytes, access, flags, file, from) }?;
    keep_out_of_cores(at, bytes);
    Ok(())
}

/// A range of reserved addresses. Dropping it frees them.
struct Place {
    at: *mut c_void,
    bytes: usize,
}

impl Place {
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
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the system chooses replaces nothing.
        let first = unsafe { mmap_anonymous(null_mut(), all, ProtFlags::empty(), flags) }?;
        let before = first.addr().wrapping_add(offset).wrapping_neg() & (align - 1);
        let at = first.wrapping_byte_add(before);
        for (part, bytes) in [(first, before), (at.wrapping_byte_add(bytes), align - before)] {
            if bytes > 0 {
                // SAFETY: a part of what has just been reserved, which nothing uses. A failure only
                // leaves the addresses reserved.
                let _ = unsafe { munmap(part, bytes) };
            }
        }
        Ok(Self { at, bytes })
    }

    /// Leaves the addresses to the mapping that has replaced them.
    fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the addresses are only reserved, so nothing uses them.
            let _ = unsafe { munmap(self.at, self.bytes) };
        }
    }
}

/// # Safety
/// `at` is the beginning of a mapping of `bytes` that is no longer used.
pub(crate) unsafe fn release(at: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise. A failure only leaves the mapping behind.
    let _ = unsafe { munmap(at.as_ptr().cast(), bytes) };
}

/// # Safety
/// The bytes are whole pages of a mapping of this origin, which nothing else currently uses.
pub(crate) unsafe fn clear(at: NonNull<u8>, bytes: usize, origin: Origin) {
    let advice = match origin {
        Origin::Private => Advice::LinuxDontNeed,
        Origin::Shared => Advice::LinuxRemove,
    };
    // SAFETY: the caller's promise. Pages that the system has taken are zero when touched again.
    let done = unsafe { madvise(at.as_ptr().cast(), bytes, advice) };
    if done.is_err() {
        // The system refuses to take locked pages.
        // SAFETY: the caller's promise.
        unsafe { at.as_ptr().write_bytes(0, bytes) };
    }
}

/// Advises small pages for a part of a mapping. A kernel without large pages refuses, which is
/// harmless.
pub(crate) fn keep_pages_small(at: *mut u8, bytes: usize) {
    advise(at, bytes, Advice::LinuxNoHugepage);
}

/// Allows large pages in a part of a mapping. A kernel that has none, or may not use them, does
/// nothing.
pub(crate) fn let_pages_be_large(at: *mut u8, bytes: usize) {
    advise(at, bytes, Advice::LinuxHugepage);
}

pub(crate) fn put_in_cores(at: *mut u8, bytes: usize) {
    advise(at, bytes, Advice::LinuxDoDump);
}

pub(crate) fn keep_out_of_cores(at: *mut u8, bytes: usize) {
    advise(at, bytes, Advice::LinuxDontDump);
}

/// Gives advice that does not change the contents of pages. It is not an error if the kernel
/// refuses it.
fn advise(at: *mut u8, bytes: usize, advice: Advice) {
    // SAFETY: such advice does not change the pages.
    let _ = unsafe { madvise(at.cast(), bytes, advice) };
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
