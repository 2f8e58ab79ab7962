//! The memory of groups in the segments of a job.

use consort_fabric::{Capabilities, Nodes, Rank};

use super::job::Job;
use crate::{inbox::geometry::Geometry, team::memory::GroupMemory};

impl Job {
    /// Returns the PEs that threads of this process run.
    #[must_use]
    pub fn here(&self) -> Vec<Rank> {
        (0..self.config().pes).map(Rank).filter(|&pe| self.is_here(pe)).collect()
    }

    /// Returns the fabric's capabilities in a team of far PEs that are placed on `nodes`.
    #[must_use]
    pub fn capabilities_between(pes: u32, nodes: Nodes) -> Capabilities {
        let between = Geometry::of(pes as usize, nodes).capabilities(nodes);
        Capabilities { buffer_bytes: 0, counts: false, ..between }
    }

    pub(crate) fn geometry(&self, pes: usize) -> Geometry {
        Geometry::of(pes, self.config().nodes)
    }

    /// Returns the memory of a group of `pes` PEs at offset `at`, or `None` if this process cannot
    /// map it.
    pub(crate) fn group_memory(&self, at: usize, pes: usize) -> Option<GroupMemory> {
        let (segment, at) = self.find_group(at).ok()?;
        Some(GroupMemory::new(&segment, at, pes, self.geometry(pes)))
    }

    /// Returns the memory of the group of all PEs.
    pub(crate) fn world_memory(&self) -> GroupMemory {
        let pes = self.states.len();
        GroupMemory::new(&self.segment, self.world.at, pes, self.geometry(pes))
    }

    /// Returns how PEs, given by their ranks in the world, are placed on nodes that share no
    /// memory.
    pub(crate) fn nodes_of(&self, ranks: &[Rank]) -> Nodes {
        let nodes = self.config().nodes;
        Nodes::of(&ranks.iter().map(|pe| nodes.node(pe.0)).collect::<Vec<_>>())
    }
}
