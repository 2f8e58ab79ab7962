//! Segments from the system: anonymous mappings without commitment.
//!
//! | | private | shared |
//! | --- | --- | --- |
//! | returning pages | `MADV_DONTNEED` | `MADV_REMOVE`: the other would only unmap them here |
//! | small pages | `MADV_NOHUGEPAGE` | the same |
//! | large pages | | `MADV_HUGEPAGE`, where the system allows it in `shmem_enabled` |

#![expect(unsafe_code, reason = "maps memory")]

use std::{
    fs::File,
    ptr::{NonNull, null_mut},
};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::segment::origin::Origin;

pub(crate) fn reserve(bytes: usize, origin: Origin) -> Option<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let sharing = match origin {
        Origin::Private => MapFlags::PRIVATE,
        Origin::Shared => MapFlags::SHARED,
    };
    let flags = sharing | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice replaces none.
    let at = unsafe { mmap_anonymous(null_mut(), bytes, access, flags) }.ok()?;
    NonNull::new(at.cast())
}

/// Maps whole pages of a file for all processes that have it.
pub(crate) fn map(file: &File, at: usize, bytes: usize) -> Option<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice replaces none.
    let at = unsafe { mmap(null_mut(), bytes, access, flags, file, at as u64) }.ok()?;
    NonNull::new(at.cast())
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
    // SAFETY: advice about pages changes nothing in them.
    let _ = unsafe { madvise(at.cast(), bytes, Advice::LinuxNoHugepage) };
}

/// Allows large pages in a part of a mapping. A kernel that has none, or is not to use them, does
/// nothing.
pub(crate) fn let_pages_be_large(at: *mut u8, bytes: usize) {
    // SAFETY: advice about pages changes nothing in them.
    let _ = unsafe { madvise(at.cast(), bytes, Advice::LinuxHugepage) };
}
