//! The program's static variables in the segment, where peers reach them.
//!
//! The pages of the program's writable data are copied to the PE's memory behind its heap, and that
//! is mapped in their place: their addresses stay as they are. What the system writes once when it
//! loads the program and protects then (`PT_GNU_RELRO`) stays private, and so do the variables of
//! shared libraries. Of memory that begins as zeros only the pages are copied that were touched.
//!
//! A child that a process forks gets private copies before it runs: what it writes is not seen by
//! its parent.

#![expect(unsafe_code, reason = "maps memory in place of the program's data")]

use std::{
    cell::Cell,
    fs::File,
    io,
    mem::ManuallyDrop,
    ops::Range,
    os::{
        fd::{AsRawFd, RawFd},
        unix::fs::FileExt,
    },
    ptr::{null_mut, with_exposed_provenance_mut},
    sync::{Arc, OnceLock},
};

use consort_fabric::Rank;
use libc::{c_int, c_void, dl_phdr_info, size_t};
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap, mmap_anonymous, mremap_fixed, munmap};

use crate::{launch::job::Job, segment::page::PAGE};

/// Whole pages of the program's writable data.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chunk {
    pages: Range<usize>,
    /// Where zeros begin, of which only touched pages are copied.
    zeros: usize,
}

/// The writable static variables of the program.
#[derive(Clone, Debug)]
pub struct Statics {
    chunks: Vec<Chunk>,
}

/// What has been mapped in place of the program's data.
struct Mapped {
    chunks: Vec<Chunk>,
    file: RawFd,
    /// Where the first chunk begins in the file.
    at: u64,
}

static MAPPED: OnceLock<Mapped> = OnceLock::new();

/// A size of memory, which the system gives in 64 bits.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

const fn down(address: usize) -> usize {
    address - address % PAGE
}

impl Statics {
    /// Those of the running program.
    #[must_use]
    pub fn of_program() -> Self {
        let mut chunks = Vec::new();
        // SAFETY: the function gets the pointer that is passed here, and lives longer.
        unsafe { libc::dl_iterate_phdr(Some(first_object), (&raw mut chunks).cast()) };
        Self { chunks }
    }

    /// Their size in bytes, in whole pages.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.pages.len()).sum()
    }

    /// The offset of memory among them; `None` if it is elsewhere.
    #[inline]
    #[must_use]
    pub fn offset_of(&self, address: usize, bytes: usize) -> Option<usize> {
        let mut before = 0;
        for Chunk { pages, .. } in &self.chunks {
            if pages.contains(&address) {
                let inside = bytes <= pages.end - address;
                return inside.then(|| before + address - pages.start);
            }
            before += pages.len();
        }
        None
    }

    /// Moves them to the memory of PE `own`, which this process is, in the job's segment, which has
    /// room for them, and is kept until the process ends. Until all PEs have done so none may
    /// access another's.
    ///
    /// # Errors
    /// When the PEs are no processes, the segment has no room, or the system does not map memory.
    ///
    /// # Safety
    /// The process has one thread, which calls this once. No reference to a static variable is
    /// used across the call but by this thread.
    pub unsafe fn share(&self, job: &Arc<Job>, own: Rank) -> io::Result<()> {
        let (file, at, offset) = job.statics(own).ok_or(io::ErrorKind::Unsupported)?;
        if offset + self.bytes() > job.memory_bytes() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let _kept = ManuallyDrop::new(Arc::clone(job));
        let touched = File::open("/proc/self/pagemap").ok();
        let mut place = job.heap(own).wrapping_add(offset);
        let mut from = at;
        for chunk in &self.chunks {
            let copied = chunk.to_copy(touched.as_ref());
            // From here on to the end of the mapping nothing may change static variables. In a
            // program without shared libraries the allocator's are among them.
            for pages in &copied {
                let source: *const u8 = with_exposed_provenance_mut(pages.start);
                let target = place.wrapping_add(pages.start - chunk.pages.start);
                // SAFETY: pages of the program's data, and as many of this PE's memory, which no
                // peer accesses yet, by the caller's promise.
                unsafe { source.copy_to_nonoverlapping(target, pages.len()) };
            }
            // SAFETY: whole pages of data, which have the same contents after this.
            unsafe { map_over(&chunk.pages, file, from) }?;
            place = place.wrapping_add(chunk.pages.len());
            from += chunk.pages.len() as u64;
        }
        let mapped = Mapped { chunks: self.chunks.clone(), file: file.as_raw_fd(), at };
        if MAPPED.set(mapped).is_ok() {
            // SAFETY: functions without arguments, which the system calls around a fork.
            unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
        }
        Ok(())
    }
}

/// # Safety
/// What is mapped there may be replaced.
unsafe fn map_over(pages: &Range<usize>, file: &File, at: u64) -> io::Result<()> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
    let begin: *mut c_void = with_exposed_provenance_mut(pages.start);
    // SAFETY: the caller's promise.
    unsafe { mmap(begin, pages.len(), access, flags, file, at) }?;
    Ok(())
}

impl Chunk {
    /// The pages to copy, in ranges: all before the zeros, and those after that were touched.
    fn to_copy(&self, pagemap: Option<&File>) -> Vec<Range<usize>> {
        let mut ranges = vec![Range { start: self.pages.start, end: self.zeros }];
        let mut words = vec![0_u8; 8 * 512];
        let mut page = self.zeros;
        while page < self.pages.end {
            let count = ((self.pages.end - page) / PAGE).min(512);
            let words = &mut words[..8 * count];
            let known = pagemap
                .is_some_and(|map| map.read_exact_at(words, (page / PAGE * 8) as u64).is_ok());
            for index in 0..count {
                // The upper two bits: in memory, or swapped out.
                let is_touched = !known || words[8 * index + 7] & 0xc0 != 0;
                let begin = page + index * PAGE;
                match ranges.last_mut() {
                    _ if !is_touched => {}
                    Some(last) if last.end == begin => last.end += PAGE,
                    _ => ranges.push(begin..begin + PAGE),
                }
            }
            page += count * PAGE;
        }
        ranges
    }
}

/// Notes the writable pages of the first object, which is the program, and ends.
///
/// # Safety
/// `chunks` is a list of chunks, and `info` what the system passes.
unsafe extern "C" fn first_object(
    info: *mut dl_phdr_info,
    _: size_t,
    chunks: *mut c_void,
) -> c_int {
    // SAFETY: the system passes a valid object.
    let info = unsafe { &*info };
    // SAFETY: as many headers as it says, which are never changed.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let range = |at: u64, bytes: u64| {
        let begin = size(info.dlpi_addr + at);
        begin..begin + size(bytes)
    };
    let protected = headers.iter().find(|header| header.p_type == libc::PT_GNU_RELRO);
    let protected = protected.map_or(0..0, |header| {
        let Range { start, end } = range(header.p_vaddr, header.p_memsz);
        down(start)..down(end)
    });
    let writable = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0);
    for header in writable {
        let Range { start, end } = range(header.p_vaddr, header.p_memsz);
        let data = range(header.p_vaddr, header.p_filesz).end;
        let pages = down(start)..end.next_multiple_of(PAGE);
        let before = pages.start..pages.end.min(protected.start).max(pages.start);
        let after = pages.start.max(protected.end).min(pages.end)..pages.end;
        let apart = protected.end <= pages.start || pages.end <= protected.start;
        let parts = if apart { vec![pages] } else { vec![before, after] };
        for pages in parts.into_iter().filter(|pages| !pages.is_empty()) {
            let zeros = data.next_multiple_of(PAGE).clamp(pages.start, pages.end);
            // SAFETY: the caller's promise.
            unsafe { (*chunks.cast::<Vec<Chunk>>()).push(Chunk { pages, zeros }) };
        }
    }
    1
}

/// The most chunks: the linkers make one, or two around what is protected.
const CHUNKS: usize = 4;

thread_local! {
    /// The addresses of private copies of the chunks, from before a fork until after it. In memory
    /// that the child does not share.
    static COPIES: Cell<[usize; CHUNKS]> = const { Cell::new([0; CHUNKS]) };
}

/// The parts of a file that have contents, in a range of it.
fn contents(file: RawFd, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let seek = |from: u64, how| {
            // SAFETY: moves a place in the file that nobody uses.
            let found = unsafe { libc::lseek(file, from.cast_signed(), how) };
            u64::try_from(found).ok()
        };
        let begin = seek(at, libc::SEEK_DATA).filter(|&begin| begin < range.end)?;
        let end = seek(begin, libc::SEEK_HOLE).unwrap_or(range.end).min(range.end);
        at = end;
        Some(begin..end)
    })
}

extern "C" fn before_fork() {
    let Some(Mapped { chunks, file, at }) = MAPPED.get() else { return };
    let (mut copies, mut next) = ([0; CHUNKS], *at);
    for (Chunk { pages, .. }, copy) in chunks.iter().zip(&mut copies) {
        let from = next;
        next += pages.len() as u64;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping replaces none.
        let Ok(new) = (unsafe { mmap_anonymous(null_mut(), pages.len(), access, flags) }) else {
            continue; // the child shares the variables
        };
        for part in contents(*file, from..from + pages.len() as u64) {
            let (offset, bytes) = (size(part.start - from), size(part.end - part.start));
            let source: *const u8 = with_exposed_provenance_mut(pages.start + offset);
            // SAFETY: bytes of the chunk, and as many of its copy.
            unsafe { source.copy_to_nonoverlapping(new.cast::<u8>().wrapping_add(offset), bytes) };
        }
        *copy = new.expose_provenance();
    }
    COPIES.set(copies);
}

/// Does something with each copy of a chunk, and forgets it.
fn with_copies(each: impl Fn(*mut c_void, &Range<usize>)) {
    let Some(Mapped { chunks, .. }) = MAPPED.get() else { return };
    for (copy, Chunk { pages, .. }) in COPIES.replace([0; CHUNKS]).into_iter().zip(chunks) {
        if copy != 0 {
            each(with_exposed_provenance_mut(copy), pages);
        }
    }
}

extern "C" fn in_parent() {
    with_copies(|copy, pages| {
        // SAFETY: mapped before the fork, and nothing uses it.
        let _ = unsafe { munmap(copy, pages.len()) };
    });
}

extern "C" fn in_child() {
    with_copies(|copy, pages| {
        let (bytes, begin) = (pages.len(), with_exposed_provenance_mut(pages.start));
        // SAFETY: pages of data, which have the same contents after this.
        let _ = unsafe { mremap_fixed(copy, bytes, bytes, MremapFlags::MAYMOVE, begin) };
    });
}
