//! The form of a job's segment: where its parts are, and their initial contents.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use consort_fabric::Rank;

use super::{
    config::Config,
    layout::{SegmentLayout, states},
};
use crate::{
    directory::{
        blocks::{BLOCK_ALIGN, HeapError},
        group_arena::GroupArenaPlace,
        lock::Directory,
    },
    inbox::{geometry::Geometry, line::Line},
    segment::{
        backing::Backing,
        memory_error::{MemoryError, out_of_memory},
        origin::Origin,
        page::{LARGE_PAGE, PAGE, Placement},
        reservation::Segment,
        slice::SegmentRef,
    },
    state::header::Header,
    team::memory::GroupMemory,
};
use consort_machine::system::clock;

pub(super) struct SegmentForm {
    pub(super) layout: SegmentLayout,
    /// The size of a PE's heap in bytes, in whole blocks.
    pub(super) heap_bytes: usize,
    /// The size in bytes of the memory of the group of all PEs.
    group_bytes: usize,
}

/// The limit for the memory of all groups, as a multiple of the memory of the world's group.
const MOST_WORLDS: usize = 1024;

/// The name of the segment in errors.
pub(super) const SEGMENT: &str = "the memory that the PEs of a job share";

/// Returns the error of a job whose memory the system has refused.
pub(crate) fn refused(config: &Config, reason: Box<MemoryError>) -> HeapError {
    HeapError::System { heap: config.heap_bytes, pes: config.pes as usize, reason }
}

impl SegmentForm {
    /// Returns the form for a configuration. If the PEs `are_apart`, in several processes, each PE
    /// of a node has staging memory.
    ///
    /// # Errors
    /// When the segment would be larger than an address space.
    pub(super) fn of(config: &Config, are_apart: bool) -> Result<Self, HeapError> {
        let pes = config.pes as usize;
        let group_bytes = Geometry::of(pes, config.nodes).bytes().next_multiple_of(PAGE);
        let staged = if are_apart { config.most_near() as usize } else { 0 };
        let align = config.heap_align.clamp(PAGE, LARGE_PAGE);
        let form = |heap_bytes| {
            let heap = (heap_bytes, align);
            let layout = SegmentLayout::of(pes, heap, config.statics_bytes, staged, group_bytes)?;
            isize::try_from(layout.bytes).ok()?;
            Some(Self { layout, heap_bytes, group_bytes })
        };
        config.heap_bytes.checked_next_multiple_of(BLOCK_ALIGN).and_then(form).ok_or_else(|| {
            let bytes = config.heap_bytes.saturating_mul(pes);
            refused(config, MemoryError::of("mmap", SEGMENT, bytes, &out_of_memory()))
        })
    }

    /// Checks that the memory limits leave room for the segment, for each of the `threads` that run
    /// PEs in this process, and for the program. The job starts those threads unless threads join
    /// it.
    ///
    /// # Errors
    /// When they do not.
    pub(super) fn ensure_room(
        &self,
        config: &Config,
        threads: u32,
    ) -> Result<(), Box<MemoryError>> {
        let lines = Geometry::of(config.pes as usize, config.nodes).lines;
        let scratch = 2 * lines * size_of::<Line>() * threads as usize;
        let started = if config.joining.is_none() && threads > 1 { threads } else { 0 };
        let helpers = if config.helpers { threads } else { 0 };
        let bytes = self.layout.bytes.saturating_add(scratch);
        MemoryError::ensure_room(SEGMENT, (bytes, config.memory), (started + helpers) as usize)
    }

    /// Returns the place at which a process that has only the PE `own` maps the segment.
    pub(super) fn placement(&self, config: &Config, own: Option<Rank>) -> Placement {
        match own {
            Some(own) if config.heap_align > LARGE_PAGE => {
                let offset = self.layout.heaps + own.index() * self.layout.heap_stride;
                Placement { align: config.heap_align, offset }
            }
            _ => Placement::ANY,
        }
    }

    /// Returns the place of the memory for groups.
    pub(super) fn arena(&self, backing: Backing) -> GroupArenaPlace {
        let begin = self.layout.arena;
        GroupArenaPlace { begin, most: self.group_bytes.saturating_mul(MOST_WORLDS), backing }
    }

    /// Advises the system on a segment's pages, in each process that maps it.
    pub(super) fn advise(&self, config: &Config, segment: &Segment) {
        let SegmentLayout { heaps, arena, .. } = self.layout;
        let (_, states_end) = states(config.pes as usize);
        segment.put_in_cores(0..states_end);
        segment.keep_pages_small(0..heaps);
        segment.keep_pages_small(arena..segment.bytes());
        if !config.fits() {
            // With this many PEs on one machine, a large page for each would take too much memory.
            segment.keep_pages_small(heaps..arena);
        } else if config.memory == Origin::Shared {
            segment.let_pages_be_large(heaps..arena);
        }
    }

    /// Fills a new segment with the initial contents of a job.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn fill(
        &self,
        config: &Config,
        segment: &Arc<Segment>,
        backing: &Backing,
    ) -> Result<(), HeapError> {
        let Self { layout, heap_bytes, group_bytes, .. } = *self;
        self.advise(config, segment);
        let header = SegmentRef::<Header>::new(segment, 0);
        header.epoch_ns.store(clock::now_ns(), Relaxed);
        header.file_end.store(segment.bytes() as u64, Relaxed);
        header.region.number.store(1, Relaxed);
        if config.senders_fence() {
            header.sleepers.let_senders_fence();
        }
        let arena = self.arena(backing.clone());
        let directory = Directory::new(segment, layout.directory, heap_bytes, arena);
        let locked = directory.lock(header.poison.flag()).ok_or(HeapError::Failed)?;
        let world = locked.found_group(config.pes as usize, group_bytes);
        let world = world.map_err(|_| HeapError::Failed)?;
        let everybody: Vec<Rank> = (0..config.pes).map(Rank).collect();
        let geometry = Geometry::of(everybody.len(), config.nodes);
        GroupMemory::new(segment, world.at, everybody.len(), geometry).introduce(&everybody);
        Ok(())
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
            let SegmentLayout { staging, arena, staging_bytes, .. } =
                SegmentForm::of(&config, true).expect("a form").layout;
            (arena - staging) / staging_bytes
        };
        let all = [Nodes::One, Nodes::Blocks(2), Nodes::InTurn(2), Nodes::Blocks(9)];
        assert_eq!(all.map(staging), [6, 2, 3, 6]);
    }
}
