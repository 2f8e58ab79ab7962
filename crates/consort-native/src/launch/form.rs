//! The form of a job's segment: where its parts are, and what they begin with.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use consort_fabric::Rank;

use super::{config::Config, layout::Parts};
use crate::{
    directory::{
        blocks::{BLOCK_ALIGN, HeapError},
        lock::Directory,
    },
    inbox::geometry::Geometry,
    segment::{page::PAGE, part::Single, reservation::Segment},
    state::header::Header,
    system::clock,
    team::memory::GroupMemory,
};

/// The form of a job's segment.
pub(super) struct Form {
    pub(super) parts: Parts,
    /// Bytes of a PE's heap, in whole blocks.
    pub(super) heap_bytes: usize,
    /// Bytes of the memory of the group of all PEs.
    group_bytes: usize,
    no_memory: HeapError,
}

impl Form {
    /// The form for a configuration.
    ///
    /// # Errors
    /// When no memory is as large.
    pub(super) fn of(config: &Config, staging_bytes: usize) -> Result<Self, HeapError> {
        let pes = config.pes as usize;
        let no_memory = HeapError::System { heap: config.heap_bytes, pes };
        let group_bytes = Geometry::of(pes).bytes().next_multiple_of(PAGE);
        let heap_bytes = config.heap_bytes.checked_next_multiple_of(BLOCK_ALIGN);
        let heap_bytes = heap_bytes.ok_or(no_memory)?;
        let parts = Parts::of(pes, heap_bytes, config.statics_bytes, staging_bytes);
        let parts = parts.ok_or(no_memory)?;
        Ok(Self { parts, heap_bytes, group_bytes, no_memory })
    }

    /// The error of a job without memory.
    pub(super) fn no_memory(&self) -> HeapError {
        self.no_memory
    }

    /// A segment by `reserve`, with room for many groups.
    pub(super) fn reserve(&self, reserve: &dyn Fn(usize) -> Option<Segment>) -> Option<Segment> {
        self.parts.reserve(self.group_bytes, reserve)
    }

    /// Fills a new segment with what a job begins with. `None` if there is no memory.
    pub(super) fn fill(&self, config: &Config, segment: &Arc<Segment>) -> Option<()> {
        let Self { parts, heap_bytes, group_bytes, .. } = *self;
        segment.keep_pages_small(0..parts.heaps);
        segment.keep_pages_small(parts.ground..segment.bytes());
        if config.pes > config.cores {
            // With so many PEs on one machine, a large page for each would take too much memory.
            segment.keep_pages_small(parts.heaps..parts.ground);
        }
        let header = Single::<Header>::new(segment, 0);
        header.epoch_ns.store(clock::now_ns(), Relaxed);
        header.region.store(1, Relaxed);
        if config.senders_fence() {
            header.sleepers.let_senders_fence();
        }
        let directory = Directory::new(segment, parts.directory, heap_bytes, parts.ground);
        let locked = directory.lock(header.poison.flag())?;
        let world = locked.found_group(config.pes as usize, group_bytes).ok()?;
        let everybody: Vec<Rank> = (0..config.pes).map(Rank).collect();
        GroupMemory::new(segment, world.at, everybody.len()).introduce(&everybody);
        Some(())
    }
}
