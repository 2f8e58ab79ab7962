//! Distances: which PEs are near, in the memory of this process, and which are far.

use consort_fabric::{Capabilities, Nodes, Rank};

use super::job::Job;
use crate::{far::link::Far, inbox::geometry::Geometry, team::memory::GroupMemory};

impl Job {
    /// Returns the PEs that threads of this process run.
    #[must_use]
    pub fn here(&self) -> Vec<Rank> {
        let all = (0..self.config().pes).map(Rank);
        match (self.own(), self.link()) {
            (Some(own), _) => vec![own],
            (None, Some(link)) => all.filter(|&pe| link.is_own(pe)).collect(),
            (None, None) => all.collect(),
        }
    }

    /// Returns whether a PE shares no memory with this process. Only called if the PE may be far.
    ///
    /// # Panics
    /// When there is no such PE.
    #[cold]
    #[inline(never)]
    fn is_far(&self, pe: Rank) -> bool {
        assert!(pe.0 < self.config().pes, "a heap is that of a PE of the job");
        self.far().is_some_and(|far| far.is_far(pe))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn assert_near(&self, pe: Rank) {
        assert!(!self.is_far(pe), "the heap of PE {pe} is not in the memory of this process");
    }

    /// Returns the link to a PE, if the PE is far.
    ///
    /// # Panics
    /// When there is no such PE.
    #[inline(always)]
    pub(crate) fn far_to(&self, pe: Rank) -> Option<&Far> {
        if pe.0 < self.near || !self.is_far(pe) { None } else { self.far() }
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

    /// Returns whether a near PE belongs to another process, which cannot access this process's
    /// private memory.
    #[cold]
    pub(crate) fn is_apart(&self, pe: Rank) -> bool {
        self.link().is_none_or(|link| !link.is_own(pe) && !link.is_far(pe))
    }

    /// Returns how PEs, given by their ranks in the world, are placed on nodes that share no
    /// memory.
    pub(crate) fn nodes_of(&self, ranks: &[Rank]) -> Nodes {
        let nodes = self.config().nodes;
        Nodes::of(&ranks.iter().map(|pe| nodes.node(pe.0)).collect::<Vec<_>>())
    }
}
