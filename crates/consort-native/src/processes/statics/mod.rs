//! The program's static variables in the segment, where peers can access them.
//!
//! The pages of the program's writable data are copied to the PE's memory behind its heap. That
//! memory is mapped in their place, so the addresses of variables stay the same. Read-only data
//! stays private. So do the variables of shared libraries, and those of the C library even if it is
//! linked statically. A page of zero-initialized memory is copied only if it has been touched. The
//! copies also read the memory between variables. Sanitizers guard that memory, so the copies are
//! made in ways that sanitizers do not check.
//!
//! Read-only data is the same on all PEs. There is room for it behind the variables: before peers
//! read such data, the PE copies it to this place.
//!
//! | file | what |
//! | --- | --- |
//! | `program` | the places of the program's data |
//! | `forks` | copies for forked children |

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

use self::{
    forks::{CHUNKS, MappedStatics},
    program::{Chunk, WritableData, page_size},
};
use crate::{
    heap::one_sided::OneSided,
    launch::{
        job::Job,
        memory::{STATICS, SharedFile},
    },
    segment::{memory_error::MemoryError, page::PAGE, reservation::Segment},
    system::{
        memory::{keep_out_of_cores, map_over},
        process as system,
    },
};

/// The size in bytes of the program's data beyond which zero-initialized data is not in core files,
/// whether or not it has been touched. The kernel would allocate each page that it writes to a core
/// file.
const SHOWN_BYTES: usize = 16 << 20;

fn memory_error(call: &'static str, bytes: usize, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), MemoryError::of(call, STATICS, bytes, error))
}

/// The static variables of the program.
#[derive(Clone, Debug)]
pub struct Statics(WritableData);

impl Statics {
    /// Returns the static variables of the running program.
    #[must_use]
    pub fn of_program() -> Self {
        Self(WritableData::of_program())
    }

    /// Returns whether the variables can be moved: this library was linked with the program, so
    /// that it runs before the program, and the process has only one thread.
    #[must_use]
    pub fn can_move(&self) -> bool {
        let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        self.0.is_linked && threads == 1
    }

    /// Returns whether the program is a static executable, which cannot load libraries.
    #[must_use]
    pub fn are_of_static_executable(&self) -> bool {
        self.0.is_static
    }

    /// Returns the size in bytes of the writable variables, in whole pages.
    fn writable_bytes(&self) -> usize {
        self.0.chunks.iter().map(|chunk| chunk.pages.len()).sum()
    }

    /// Returns the number of bytes that the variables need in a segment.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.writable_bytes() + self.0.constants.iter().map(Range::len).sum::<usize>()
    }

    /// Returns the offset of memory among the writable variables, or `None` if it is elsewhere.
    #[inline]
    #[must_use]
    pub fn offset_of(&self, address: usize, bytes: usize) -> Option<usize> {
        offset_in(self.0.chunks.iter().map(|chunk| &chunk.pages), address, bytes)
    }

    /// Returns the offset of the place for a copy of read-only data, or `None` if it is not
    /// read-only data of the program.
    #[cold]
    #[must_use]
    pub fn offset_of_constant(&self, address: usize, bytes: usize) -> Option<usize> {
        let found = offset_in(self.0.constants.iter(), address, bytes);
        found.map(|at| self.writable_bytes() + at)
    }

    /// Moves the variables to the memory of PE `own`, which is this process's PE, in the job's
    /// segment. The segment must have room for them. It is kept until the process ends. No PE may
    /// access another PE's variables until all PEs have done this.
    ///
    /// # Errors
    /// When no launcher has started the process, when the segment has no room, and for the reasons
    /// of [`Statics::move_out`].
    ///
    /// # Safety
    /// Same as [`Statics::move_out`].
    pub unsafe fn share(&self, job: &Arc<Job>, own: Rank) -> io::Result<()> {
        let (file, at) = job.statics(own).ok_or(io::ErrorKind::Unsupported)?;
        if job.statics_at() + self.bytes() > job.memory_bytes() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let _kept = ManuallyDrop::new(Arc::clone(job));
        let place = job.heap(own).wrapping_add(job.statics_at());
        // SAFETY: the caller's promise. The job's segment exists.
        unsafe { self.move_to(file, at, place) }
    }

    /// Moves the variables to a separate file, in which other processes may find them.
    ///
    /// # Errors
    /// When they have been moved before, or the system does not map memory.
    ///
    /// # Safety
    /// The variables [can move](Self::can_move), and no other thread begins before this returns.
    /// Only this thread uses references to static variables across the call. The file is kept until
    /// the process ends.
    pub unsafe fn move_out(&self) -> io::Result<SharedFile> {
        let file = SharedFile::new()?;
        let bytes = self.writable_bytes();
        if bytes > 0 {
            system::extend(&file.0, bytes as u64)
                .map_err(|error| memory_error("ftruncate", bytes, &error))?;
            let segment = Segment::map(&file.0, 0, bytes, STATICS, None);
            let segment = segment.map_err(io::Error::other)?;
            // SAFETY: the caller's promise. The memory that has just been mapped has room for the
            // variables.
            unsafe { self.move_to(&file.0, 0, segment.at(0, bytes)) }?;
        }
        Ok(file)
    }

    /// Moves the variables to a file, from offset `at` on. This part of the file is mapped at
    /// `place`.
    ///
    /// # Safety
    /// Same as [`Statics::move_out`]. `place` has room for the writable variables.
    unsafe fn move_to(&self, file: &File, at: u64, mut place: *mut u8) -> io::Result<()> {
        let chunks = &self.0.chunks;
        if !PAGE.is_multiple_of(page_size()) || chunks.len() > CHUNKS {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if forks::is_mapped() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let touched = File::open("/proc/self/pagemap").ok();
        let mut from = at;
        for chunk in chunks {
            let copied = chunk.to_copy(touched.as_ref());
            // From here until the pages are mapped, nothing may change static variables.
            for pages in &copied {
                let source: *const u8 = with_exposed_provenance(pages.start);
                let target = place.wrapping_add(pages.start - chunk.pages.start);
                // SAFETY: pages of the program's data, and the same number of bytes of this PE's
                // memory, which no peer accesses yet, by the caller's promise.
                unsafe { OneSided::copy(target, source, pages.len()) };
            }
            let begin = with_exposed_provenance_mut(chunk.pages.start);
            // SAFETY: whole pages of data, which have the same contents afterwards.
            unsafe { map_over(begin, chunk.pages.len(), file, from) }
                .map_err(|error| memory_error("mmap", chunk.pages.len(), &error))?;
            let hidden = chunk.zeros.max(chunk.pages.start + SHOWN_BYTES)..chunk.pages.end;
            if !hidden.is_empty() {
                keep_out_of_cores(with_exposed_provenance_mut(hidden.start), hidden.len());
            }
            place = place.wrapping_add(chunk.pages.len());
            from += chunk.pages.len() as u64;
        }
        forks::copy_for_children(MappedStatics {
            chunks: chunks.clone(),
            file: file.as_raw_fd(),
            at,
        })
    }
}

/// Returns the offset of memory in ranges that are placed one after the other.
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

impl Chunk {
    /// Returns the ranges of pages to copy: all pages before the zeros, and those of the rest that
    /// were touched.
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
                // The upper two bits mean in memory, and swapped out.
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
