//! Segments from the system: mappings without commitment, anonymous or of files in memory.
//!
//! | | private | shared, of a file |
//! | --- | --- | --- |
//! | returning pages | `MADV_DONTNEED` | `MADV_REMOVE`: the other would only unmap them here |
//! | small pages | `MADV_NOHUGEPAGE` | the same |
//! | large pages | | `MADV_HUGEPAGE`, where the system allows it in `shmem_enabled` |
//! | core files | `MADV_DONTDUMP` at first, `MADV_DODUMP` for what is used | the same |
//!
//! All begin at a large page, or where a [`Placement`] says.
//!
//! A mapping is left out of core files at first because the kernel provides each page of shared
//! memory that it writes to one, and walks through all others.

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
    // SAFETY: it replaces addresses that have been reserved for it.
    let at = unsafe { mmap_anonymous(place.at, bytes, access, flags) }?;
    place.keep();
    kept_out_of_cores(at.cast(), bytes)
}

/// Maps whole pages of a file for all processes that have it.
pub(crate) fn map(
    file: &File,
    at: usize,
    bytes: usize,
    placement: Placement,
) -> io::Result<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::NORESERVE | MapFlags::FIXED;
    let place = Place::of(bytes, placement)?;
    // SAFETY: it replaces addresses that have been reserved for it.
    let at = unsafe { mmap(place.at, bytes, access, flags, file, at as u64) }?;
    place.keep();
    kept_out_of_cores(at.cast(), bytes)
}

/// A new mapping, which no core file contains.
fn kept_out_of_cores(at: *mut u8, bytes: usize) -> io::Result<NonNull<u8>> {
    advise(at, bytes, Advice::LinuxDontDump);
    NonNull::new(at).ok_or_else(out_of_memory)
}

/// Maps whole pages of a file, for all processes that have it, in place of what is at an address.
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

/// Maps whole pages of a file in place of the same pages: what this process writes from now on
/// reaches no other. For a child that has been forked.
///
/// # Safety
/// The pages are those of the file from that place on.
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

/// Addresses that nothing else has. They are free again when it is dropped.
struct Place {
    at: *mut c_void,
    bytes: usize,
}

impl Place {
    /// So many bytes, which are whole pages.
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
        // SAFETY: a new mapping at an address of the system's choice replaces none.
        let first = unsafe { mmap_anonymous(null_mut(), all, ProtFlags::empty(), flags) }?;
        let before = first.addr().wrapping_add(offset).wrapping_neg() & (align - 1);
        let at = first.wrapping_byte_add(before);
        for (part, bytes) in [(first, before), (at.wrapping_byte_add(bytes), align - before)] {
            if bytes > 0 {
                // SAFETY: a part of what has just been reserved, which nothing uses. A failure
                // leaves the addresses reserved, and nothing else.
                let _ = unsafe { munmap(part, bytes) };
            }
        }
        Ok(Self { at, bytes })
    }

    /// Leaves it to the mapping that has replaced it.
    fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: nothing uses what has only been reserved.
            let _ = unsafe { munmap(self.at, self.bytes) };
        }
    }
}

/// # Safety
/// `at` is the beginning of a mapping of `bytes`, which nothing uses any more.
pub(crate) unsafe fn release(at: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise. A failure leaves the mapping behind, and nothing else.
    let _ = unsafe { munmap(at.as_ptr().cast(), bytes) };
}

/// # Safety
/// They are whole pages of a mapping of this origin, which nothing else uses at present.
pub(crate) unsafe fn clear(at: NonNull<u8>, bytes: usize, origin: Origin) {
    let advice = match origin {
        Origin::Private => Advice::LinuxDontNeed,
        Origin::Shared => Advice::LinuxRemove,
    };
    // SAFETY: the caller's promise. Pages that the system has taken are zero when touched again.
    let done = unsafe { madvise(at.as_ptr().cast(), bytes, advice) };
    if done.is_err() {
        // The system does not take pages that are locked.
        // SAFETY: the caller's promise.
        unsafe { at.as_ptr().write_bytes(0, bytes) };
    }
}

/// Advises small pages for a part of a mapping. A kernel without large pages refuses, which does no
/// harm.
pub(crate) fn keep_pages_small(at: *mut u8, bytes: usize) {
    advise(at, bytes, Advice::LinuxNoHugepage);
}

/// Allows large pages in a part of a mapping. A kernel that has none, or is not to use them, does
/// nothing.
pub(crate) fn let_pages_be_large(at: *mut u8, bytes: usize) {
    advise(at, bytes, Advice::LinuxHugepage);
}

/// Lets core files contain a part of a mapping.
pub(crate) fn put_in_cores(at: *mut u8, bytes: usize) {
    advise(at, bytes, Advice::LinuxDoDump);
}

/// Keeps a part of a mapping out of core files.
pub(crate) fn keep_out_of_cores(at: *mut u8, bytes: usize) {
    advise(at, bytes, Advice::LinuxDontDump);
}

/// Gives advice that changes nothing in the contents of pages. A kernel that refuses it does
/// without.
fn advise(at: *mut u8, bytes: usize, advice: Advice) {
    // SAFETY: such advice changes nothing in the pages.
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
