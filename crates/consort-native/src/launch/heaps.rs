//! The place of each PE's memory in the segment: its heap, static variables and message buffer.

use std::ops::Range;

use consort_fabric::Rank;

use super::{job::Job, layout::SegmentLayout};
use crate::{
    heap::staging::StagedBlock,
    inbox::geometry::BUFFER_BYTES,
    segment::{origin::Origin, page::LARGE_PAGE},
};

/// The maximum number of PEs of one process whose heaps are in its core files. Each heap takes two
/// mappings.
const SHOWN_HEAPS: u32 = 256;

/// The maximum size in bytes of the shared heaps in the core files of all PEs of a machine
/// together. The kernel allocates each page of shared memory that it writes to a core file, so
/// allocations that were never touched would cost as much as those in use.
const SHOWN_BYTES: usize = 1 << 30;

impl Job {
    /// Returns the base address of a PE's symmetric heap, by its rank in the world.
    #[inline(always)]
    pub(crate) fn heap(&self, pe: Rank) -> *mut u8 {
        let SegmentLayout { heaps, heap_stride, .. } = self.layout;
        self.assert_near(pe);
        self.segment.at(heaps + pe.index() * heap_stride, self.memory_bytes())
    }

    /// Returns the size in bytes of a PE's heap and static variables. Peers access all of it by
    /// offset.
    #[inline(always)]
    pub fn memory_bytes(&self) -> usize {
        self.layout.memory_bytes
    }

    /// Returns the place in the segment of these bytes, if they lie in the memory of a PE.
    pub(crate) fn heap_block(&self, pe: Rank, at: *mut u8, bytes: usize) -> Option<StagedBlock> {
        let offset = at.addr().checked_sub(self.heap(pe).addr())?;
        let is_inside = self.has_in_memory(offset, bytes);
        is_inside.then(|| StagedBlock::in_segment(&self.segment, self.segment.offset_of(at)))
    }

    /// Returns whether `bytes` bytes from offset `at` on are in the memory of a PE.
    #[inline(always)]
    pub(crate) fn has_in_memory(&self, at: usize, bytes: usize) -> bool {
        at.checked_add(bytes).is_some_and(|end| end <= self.memory_bytes())
    }

    /// Returns the offset of a PE's static variables from its heap.
    #[must_use]
    pub fn statics_at(&self) -> usize {
        self.layout.statics
    }

    /// Returns the file with a PE's static variables, if a launcher has started it, and their
    /// offset in the file.
    #[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
    pub(crate) fn statics(&self, pe: Rank) -> Option<(&std::fs::File, u64)> {
        let (file, begin) = self.joined.as_ref()?.file();
        Some((file, begin + self.layout.statics_of(pe.index()) as u64))
    }

    /// Returns the size of a PE's symmetric heap in bytes.
    #[inline(always)]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.config().heap_bytes
    }

    /// Returns the base address of a PE's message buffer, by its rank in the world.
    #[inline(always)]
    pub(crate) fn buffer(&self, pe: Rank) -> *mut u8 {
        assert!(pe.0 < self.config().pes, "a message buffer is that of a PE of the job");
        self.segment.at(self.layout.buffers + pe.index() * BUFFER_BYTES, BUFFER_BYTES)
    }

    /// Includes a part of a PE's heap in core files of this process, up to [`Job::shown_bytes`].
    /// Called when the part is allocated. Heaps of PEs of other processes are not included. With
    /// more than 256 PEs no heap is included, because each part takes two of the mappings that a
    /// process may have.
    pub fn put_in_cores(&self, pe: Rank, part: Range<usize>) {
        let end = part.end.min(self.shown_bytes());
        if part.start < end && self.shows(pe) {
            self.segment.put_in_cores(self.layout.units_of(pe.index(), part.start..end));
        }
    }

    /// Excludes the whole units of a part of a PE's heap from core files of this process. Called
    /// when nothing is allocated in the part any more.
    pub fn keep_out_of_cores(&self, pe: Rank, part: Range<usize>) {
        if part.start < self.shown_bytes() && self.shows(pe) {
            self.segment.keep_out_of_cores(self.layout.units_within(pe.index(), part));
        }
    }

    /// Returns whether core files of this process may contain the heap of a PE.
    fn shows(&self, pe: Rank) -> bool {
        let is_only_process = self.own().is_none() && !self.net.is_linked();
        self.is_here(pe) && (!is_only_process || self.config().pes <= SHOWN_HEAPS)
    }

    /// Returns how much of each heap core files may contain, in bytes from its beginning. If the
    /// memory is shared, each heap gets an equal share of 1 GiB, but at least 2 MiB. Otherwise core
    /// files may contain the whole heap.
    pub fn shown_bytes(&self) -> usize {
        let config = self.config();
        match config.memory {
            Origin::Private => usize::MAX,
            Origin::Shared => {
                (SHOWN_BYTES / config.most_near().max(1) as usize / LARGE_PAGE).max(1) * LARGE_PAGE
            }
        }
    }
}
