//! The program's static variables in the segment, where peers reach them.
//!
//! The pages of the program's writable data are copied to the PE's memory behind its heap, and that
//! is mapped in their place: their addresses stay as they are. What is read-only stays private, and
//! so do the variables of libraries, of the C library in any case. Of memory that begins as zeros
//! only the pages are copied that were touched. Copies are made by means that sanitizers do not
//! see, since what they guard lies between the variables.
//!
//! Read-only data is the same on all PEs. There is room for it behind the variables, where a PE
//! copies what peers are to read of it.
//!
//! | file | what |
//! | --- | --- |
//! | `program` | where the program's data lies |
//! | `forks` | copies for children that the process forks |

#![expect(unsafe_code, reason = "maps memory in place of the program's data")]

mod forks;
mod program;

use std::{
    fs::{self, File},
    io,
    mem::ManuallyDrop,
    ops::Range,
    os::{fd::AsRawFd, unix::fs::FileExt},
    ptr::{with_exposed_provenance, with_exposed_provenance_mut},
    sync::Arc,
};

use consort_fabric::Rank;
use libc::c_void;
use rustix::mm::{MapFlags, ProtFlags, mmap};

use self::{
    forks::{CHUNKS, Mapped},
    program::{Chunk, Data, page_size},
};
use crate::{heap::one_sided::OneSided, launch::job::Job, segment::page::PAGE};

/// The static variables of the program.
#[derive(Clone, Debug)]
pub struct Statics(Data);

impl Statics {
    /// Those of the running program.
    #[must_use]
    pub fn of_program() -> Self {
        Self(Data::of_program())
    }

    /// Whether they can be moved: this library was linked with the program, so that it runs before
    /// it, and the process has one thread.
    #[must_use]
    pub fn can_move(&self) -> bool {
        let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        self.0.is_linked && threads == 1
    }

    /// The size in bytes, in whole pages, of what is writable.
    fn writable_bytes(&self) -> usize {
        self.0.chunks.iter().map(|chunk| chunk.pages.len()).sum()
    }

    /// The size in bytes that they need in a segment.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.writable_bytes() + self.0.constants.iter().map(Range::len).sum::<usize>()
    }

    /// The offset of memory among those that are writable; `None` if it is elsewhere.
    #[inline]
    #[must_use]
    pub fn offset_of(&self, address: usize, bytes: usize) -> Option<usize> {
        offset_in(self.0.chunks.iter().map(|chunk| &chunk.pages), address, bytes)
    }

    /// The offset of the place for a copy of read-only data; `None` if it is elsewhere.
    #[cold]
    #[must_use]
    pub fn offset_of_constant(&self, address: usize, bytes: usize) -> Option<usize> {
        let found = offset_in(self.0.constants.iter(), address, bytes);
        found.map(|at| self.writable_bytes() + at)
    }

    /// Moves them to the memory of PE `own`, which this process is, in the job's segment, which has
    /// room for them, and is kept until the process ends. Until all PEs have done so none may
    /// access another's.
    ///
    /// # Errors
    /// When they have been moved before, when the PEs are no processes, the segment has no room, or
    /// the system does not map memory.
    ///
    /// # Safety
    /// They [can move](Self::can_move), and no other thread begins before this returns. No
    /// reference to a static variable is used across the call but by this thread.
    pub unsafe fn share(&self, job: &Arc<Job>, own: Rank) -> io::Result<()> {
        let (file, at, offset) = job.statics(own).ok_or(io::ErrorKind::Unsupported)?;
        let chunks = &self.0.chunks;
        if !PAGE.is_multiple_of(page_size()) || chunks.len() > CHUNKS {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if offset + self.bytes() > job.memory_bytes() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if forks::is_mapped() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let _kept = ManuallyDrop::new(Arc::clone(job));
        let touched = File::open("/proc/self/pagemap").ok();
        let mut place = job.heap(own).wrapping_add(offset);
        let mut from = at;
        for chunk in chunks {
            let copied = chunk.to_copy(touched.as_ref());
            // From here on to the end of the mapping nothing may change static variables.
            for pages in &copied {
                let source: *const u8 = with_exposed_provenance(pages.start);
                let target = place.wrapping_add(pages.start - chunk.pages.start);
                // SAFETY: pages of the program's data, and as many of this PE's memory, which no
                // peer accesses yet, by the caller's promise.
                unsafe { OneSided::copy(target, source, pages.len()) };
            }
            // SAFETY: whole pages of data, which have the same contents after this.
            unsafe { map_over(&chunk.pages, file, from) }?;
            place = place.wrapping_add(chunk.pages.len());
            from += chunk.pages.len() as u64;
        }
        forks::copy_for_children(Mapped { chunks: chunks.clone(), file: file.as_raw_fd(), at })
    }
}

/// The offset of memory in ranges that follow one another.
#[inline]
fn offset_in<'a>(
    ranges: impl Iterator<Item = &'a Range<usize>>,
    address: usize,
    bytes: usize,
) -> Option<usize> {
    let mut before = 0;
    for range in ranges {
        if range.contains(&address) {
            let inside = bytes <= range.end - address;
            return inside.then(|| before + address - range.start);
        }
        before += range.len();
    }
    None
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
        let size = page_size();
        let mut ranges = vec![Range { start: self.pages.start, end: self.zeros }];
        let mut words = vec![0_u8; 8 * 512];
        let mut page = self.zeros;
        while page < self.pages.end {
            let count = ((self.pages.end - page) / size).min(512);
            let words = &mut words[..8 * count];
            let known = pagemap
                .is_some_and(|map| map.read_exact_at(words, (page / size * 8) as u64).is_ok());
            for index in 0..count {
                // The upper two bits: in memory, or swapped out.
                let is_touched = !known || words[8 * index + 7] & 0xc0 != 0;
                let begin = page + index * size;
                match ranges.last_mut() {
                    _ if !is_touched => {}
                    Some(last) if last.end == begin => last.end += size,
                    _ => ranges.push(begin..begin + size),
                }
            }
            page += count * size;
        }
        ranges
    }
}
