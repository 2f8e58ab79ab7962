//! The form of a job's segment: where its parts are, and what they begin with.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use consort_fabric::Rank;

use super::{
    config::Config,
    layout::{self, Parts},
};
use crate::{
    directory::{
        blocks::{BLOCK_ALIGN, HeapError},
        lock::Directory,
    },
    inbox::geometry::Geometry,
    segment::{origin::Origin, page::PAGE, part::Single, reservation::Segment},
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
    /// The form for a configuration. Of PEs that are processes, each of a node has `staging_bytes`
    /// for copies of private buffers.
    ///
    /// # Errors
    /// When no memory is as large.
    pub(super) fn of(config: &Config, staging_bytes: usize) -> Result<Self, HeapError> {
        let pes = config.pes as usize;
        let no_memory = HeapError::System { heap: config.heap_bytes, pes };
        let group_bytes = Geometry::of(pes, config.nodes).bytes().next_multiple_of(PAGE);
        let heap_bytes = config.heap_bytes.checked_next_multiple_of(BLOCK_ALIGN);
        let heap_bytes = heap_bytes.ok_or(no_memory)?;
        let align = config.heap_align.max(PAGE);
        let staging = (config.most_near() as usize, staging_bytes);
        let parts = Parts::of(pes, (heap_bytes, align), config.statics_bytes, staging);
        let parts = parts.ok_or(no_memory)?;
        Ok(Self { parts, heap_bytes, group_bytes, no_memory })
    }

    /// The form of a segment that another process has filled.
    ///
    /// # Errors
    /// As [`Form::of`].
    pub(super) fn found(config: &Config, segment: &Arc<Segment>) -> Result<Self, HeapError> {
        let staging_bytes = Single::<Header>::new(segment, 0).staging_bytes.load(Relaxed);
        Self::of(config, usize::try_from(staging_bytes).unwrap_or(usize::MAX))
    }

    /// The error of a job without memory.
    pub(super) fn no_memory(&self) -> HeapError {
        self.no_memory
    }

    /// A segment by `reserve`, with room for many groups, and with what a job begins with. `None`
    /// if there is no memory.
    pub(super) fn make(
        &self,
        config: &Config,
        reserve: &dyn Fn(usize) -> Option<Segment>,
    ) -> Option<Arc<Segment>> {
        let segment = Arc::new(self.parts.reserve(self.group_bytes, reserve)?);
        self.fill(config, &segment)?;
        Some(segment)
    }

    /// As [`Form::make`], with room for copies of private buffers.
    pub(super) fn make_staged(
        config: &Config,
        reserve: &dyn Fn(usize) -> Option<Segment>,
    ) -> Option<Arc<Segment>> {
        let make = |bytes| Self::of(config, bytes).ok()?.make(config, reserve);
        layout::reserve_staging(config.most_near(), make)
    }

    /// Advises the sizes of a segment's pages, in each process that maps it.
    pub(super) fn advise(&self, config: &Config, segment: &Segment) {
        let Parts { heaps, ground, .. } = self.parts;
        segment.keep_pages_small(0..heaps);
        segment.keep_pages_small(ground..segment.bytes());
        if !config.fits() {
            // With so many PEs on one machine, a large page for each would take too much memory.
            segment.keep_pages_small(heaps..ground);
        } else if config.memory == Origin::Shared {
            segment.let_pages_be_large(heaps..ground);
        }
    }

    /// Fills a new segment with what a job begins with. `None` if there is no memory.
    fn fill(&self, config: &Config, segment: &Arc<Segment>) -> Option<()> {
        let Self { parts, heap_bytes, group_bytes, .. } = *self;
        self.advise(config, segment);
        let header = Single::<Header>::new(segment, 0);
        header.epoch_ns.store(clock::now_ns(), Relaxed);
        header.staging_bytes.store(parts.staging_bytes as u64, Relaxed);
        header.region.store(1, Relaxed);
        if config.senders_fence() {
            header.sleepers.let_senders_fence();
        }
        let directory = Directory::new(segment, parts.directory, heap_bytes, parts.ground);
        let locked = directory.lock(header.poison.flag())?;
        let world = locked.found_group(config.pes as usize, group_bytes).ok()?;
        let everybody: Vec<Rank> = (0..config.pes).map(Rank).collect();
        let geometry = Geometry::of(everybody.len(), config.nodes);
        GroupMemory::new(segment, world.at, everybody.len(), geometry).introduce(&everybody);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use consort_fabric::Nodes;

    use super::*;

    #[test]
    fn only_pes_of_the_node_have_staging() {
        let staging = |nodes| {
            let config = Config { pes: 6, nodes, ..Config::of_two() };
            let Parts { staging, ground, .. } = Form::of(&config, PAGE).expect("a form").parts;
            (ground - staging) / PAGE
        };
        let all = [Nodes::One, Nodes::Blocks(2), Nodes::InTurn(2), Nodes::Blocks(9)];
        assert_eq!(all.map(staging), [6, 2, 3, 6]);
    }
}
