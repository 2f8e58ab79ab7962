//! Forked children: their static variables are private copies.
//!
//! | when | action |
//! | --- | --- |
//! | before a fork | the variables are copied to private memory |
//! | after the fork, in the parent | the copy is released |
//! | after the fork, in the child | the copy is mapped in place of the variables |
//!
//! The copies belong to the thread that forks. If a child gets no copy, it reports that and exits,
//! before it can change variables that its parent uses. A child's variables are private already, so
//! it need not do this for its own children. A child that is created without these handlers, for
//! example by `clone`, shares the variables.

#![expect(unsafe_code, reason = "maps memory in place of the program's data")]

use std::{
    cell::Cell,
    io,
    ops::Range,
    os::fd::RawFd,
    ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use libc::c_void;

use super::program::Chunk;
use crate::{
    heap::one_sided::OneSided,
    system::memory::{READ_WRITE, mmap},
};
use consort_machine::system::fork::{self, StaticCopies};

/// The maximum number of chunks. Linkers make a few, around protected data.
pub(super) const CHUNKS: usize = 16;

/// The memory that has been mapped in place of the program's data.
pub(super) struct MappedStatics {
    pub(super) chunks: Vec<Chunk>,
    pub(super) file: RawFd,
    /// The offset of the first chunk in the file.
    pub(super) at: u64,
}

static MAPPED: OnceLock<MappedStatics> = OnceLock::new();
/// Whether this process itself has mapped the memory, and is not a child of one that has.
static IS_OWN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The addresses of the private copies of the chunks, from before a fork until after it. 0 if a
    /// copy could not be made. In memory that the child does not share.
    static COPIES: Cell<[usize; CHUNKS]> = const { Cell::new([0; CHUNKS]) };
}

/// Makes children get copies of the memory that has been mapped.
pub(super) fn copy_for_children(mapped: MappedStatics) -> io::Result<()> {
    if MAPPED.set(mapped).is_err() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    IS_OWN.store(true, Relaxed);
    fork::copy(StaticCopies { before: before_fork, in_parent, in_child })
}

/// Returns whether memory has been mapped, by this process or by an ancestor.
pub(super) fn is_mapped() -> bool {
    MAPPED.get().is_some()
}

/// Returns the next part of a file with contents, between two offsets.
fn next_contents(file: RawFd, from: u64, end: u64) -> io::Result<Option<Range<u64>>> {
    let seek = |from: u64, how| {
        // SAFETY: moves the file offset, which nothing uses.
        let found = unsafe { libc::lseek(file, from.cast_signed(), how) };
        match u64::try_from(found) {
            Ok(found) => Ok(Some(found.min(end)).filter(|&found| found < end)),
            Err(_) => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
                error => Err(error),
            },
        }
    };
    let Some(begin) = seek(from, libc::SEEK_DATA)? else { return Ok(None) };
    Ok(Some(begin..seek(begin, libc::SEEK_HOLE)?.unwrap_or(end)))
}

/// Returns a private copy of pages, which are in the file at offset `at`.
fn copy(pages: &Range<usize>, file: RawFd, at: u64) -> io::Result<*mut c_void> {
    // SAFETY: a new mapping replaces nothing.
    let new = unsafe { mmap(null_mut(), pages.len(), READ_WRITE, libc::MAP_PRIVATE, None) }?;
    let (mut next, end) = (at, at + pages.len() as u64);
    while let Some(part) = next_contents(file, next, end)? {
        next = part.end;
        // Both are less than the length of the pages.
        let [offset, bytes] = [part.start - at, part.end - part.start]
            .map(|bytes| usize::try_from(bytes).unwrap_or(pages.len()));
        let source: *const u8 = with_exposed_provenance(pages.start + offset);
        // SAFETY: bytes of the chunk, and the same number of bytes of its copy.
        unsafe { OneSided::copy(new.cast::<u8>().wrapping_add(offset), source, bytes) };
    }
    Ok(new)
}

/// Returns the memory that has been mapped, if children still need copies of it.
fn of_own() -> Option<&'static MappedStatics> {
    MAPPED.get().filter(|_| IS_OWN.load(Relaxed))
}

fn before_fork() {
    let Some(MappedStatics { chunks, file, at }) = of_own() else { return };
    let (mut copies, mut next) = ([0; CHUNKS], *at);
    for (Chunk { pages, .. }, address) in chunks.iter().zip(&mut copies) {
        *address = copy(pages, *file, next).map_or(0, <*mut c_void>::expose_provenance);
        next += pages.len() as u64;
    }
    COPIES.set(copies);
}

/// Returns the chunks and the addresses of their copies, and forgets the addresses.
fn take_copies() -> impl Iterator<Item = (&'static Range<usize>, usize)> {
    let chunks = of_own().map_or(&[][..], |mapped| &mapped.chunks);
    chunks.iter().map(|chunk| &chunk.pages).zip(COPIES.replace([0; CHUNKS]))
}

fn in_parent() {
    if of_own().is_none() {
        return;
    }
    for (pages, copy) in take_copies().filter(|(_, copy)| *copy != 0) {
        // SAFETY: mapped before the fork, and unused.
        let _ = unsafe { libc::munmap(with_exposed_provenance_mut(copy), pages.len()) };
    }
}

fn in_child() {
    const MOVE: libc::c_int = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    if of_own().is_none() {
        return;
    }
    for (pages, copy) in take_copies() {
        let (bytes, begin) = (pages.len(), with_exposed_provenance_mut::<c_void>(pages.start));
        let copy = with_exposed_provenance_mut(copy);
        // SAFETY: pages of data, which have the same contents afterwards.
        let moved = || unsafe { libc::mremap(copy, bytes, bytes, MOVE, begin) };
        if copy.is_null() || moved() == libc::MAP_FAILED {
            fork::end_child(
                "consort: a forked child ends, since its static variables could not be copied\n",
            );
        }
    }
    IS_OWN.store(false, Relaxed);
}
