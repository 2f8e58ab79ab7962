//! Where the memory of each PE lies in the segment: its heap, static variables, message buffer.

use std::{fs::File, ops::Range};

use consort_fabric::Rank;

use super::{job::Job, layout::Parts};
use crate::{
    inbox::geometry::BUFFER_BYTES,
    segment::{origin::Origin, page::LARGE_PAGE},
};

/// The most PEs of one process whose heaps are in its core files: each takes two mappings.
const SHOWN_HEAPS: u32 = 256;

/// The most bytes of shared heaps that the core files of all PEs of a machine contain together. The
/// kernel provides each page of shared memory that it writes to a core file, so allocations that
/// nobody has touched would cost as much as those that are in use.
const SHOWN_BYTES: usize = 1 << 30;

impl Job {
    /// The base address of a PE's symmetric heap, by its rank in the world.
    #[inline(always)]
    pub(crate) fn heap(&self, pe: Rank) -> *mut u8 {
        let Parts { heaps, heap_stride, .. } = self.parts;
        if pe.0 >= self.near {
            self.assert_near(pe);
        }
        self.segment.at(heaps + pe.index() * heap_stride, self.memory_bytes())
    }

    /// Bytes of a PE's heap and its static variables, all of which peers reach by their offsets.
    #[inline(always)]
    pub fn memory_bytes(&self) -> usize {
        self.parts.memory_bytes
    }

    /// The offset of a PE's static variables from its heap.
    #[must_use]
    pub fn statics_at(&self) -> usize {
        self.parts.statics
    }

    /// The file with a PE's static variables, if a launcher has started it, and where they begin.
    pub(crate) fn statics(&self, pe: Rank) -> Option<(&File, u64)> {
        let (file, begin) = self.joined.as_ref()?.file();
        Some((file, begin + self.parts.statics_of(pe.index()) as u64))
    }

    /// Bytes of a PE's symmetric heap.
    #[inline(always)]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.config().heap_bytes
    }

    /// The base address of a PE's message buffer, by its rank in the world.
    #[inline(always)]
    pub(crate) fn buffer(&self, pe: Rank) -> *mut u8 {
        assert!(pe.0 < self.config().pes, "a message buffer is that of a PE of the job");
        self.segment.at(self.parts.buffers + pe.index() * BUFFER_BYTES, BUFFER_BYTES)
    }

    /// Lets core files of this process contain a part of a PE's heap, which has been allocated, up
    /// to [`Job::shown_bytes`]; not the heap of a PE of another process. Of more than 256 PEs they
    /// contain none, since each part takes two of the mappings that a process may have.
    pub fn put_in_cores(&self, pe: Rank, part: Range<usize>) {
        let end = part.end.min(self.shown_bytes());
        if part.start < end && self.shows(pe) {
            self.segment.put_in_cores(self.parts.units_of(pe.index(), part.start..end));
        }
    }

    /// Keeps the whole units of a part of a PE's heap, in which nothing is allocated any more, out
    /// of core files of this process.
    pub fn keep_out_of_cores(&self, pe: Rank, part: Range<usize>) {
        if part.start < self.shown_bytes() && self.shows(pe) {
            self.segment.keep_out_of_cores(self.parts.units_within(pe.index(), part));
        }
    }

    /// Whether core files of this process may contain the heap of a PE.
    fn shows(&self, pe: Rank) -> bool {
        match (self.own(), self.link()) {
            (Some(own), _) => own == pe,
            (None, Some(link)) => link.is_own(pe),
            (None, None) => self.config().pes <= SHOWN_HEAPS,
        }
    }

    /// How much of the beginning of each heap core files may contain: an equal share of 1 GiB if
    /// the memory is shared, but at least 2 MiB; otherwise all.
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
