//! The order in which PEs get processors.
//!
//! A second hardware thread of a busy core is worth less than any idle core, so all cores come
//! first. PEs with neighbouring ranks communicate most, so packages, then nodes, then last-level
//! caches are filled one after the other. Packages, nodes and caches with the most allowed cores
//! come first, so that PEs use as few of them as possible.

use super::{machine::Topology, sysfs::Cpu};
use crate::affinity::CpuId;
use std::cmp::Reverse;

/// The position of a processor: package, node, and lowest processor of its last-level cache.
type CpuPosition = [u32; 3];

impl Topology {
    /// Returns a processor for each of `pes` PEs, by rank; `None` if they outnumber the allowed
    /// processors.
    ///
    /// Each physical core comes before the second thread of any core. Near cores are adjacent; the
    /// package, node and last-level cache with the most allowed cores come first.
    #[must_use]
    pub fn placement(&self, pes: usize) -> Option<Vec<CpuId>> {
        let mut cpus = self.placement_order(pes, None)?;
        cpus.truncate(pes);
        Some(cpus)
    }

    /// Returns the last-level cache, the NUMA node and the package of each of `pes` PEs placed by
    /// [`Topology::placement`]. A cache is named by its lowest processor. Empty if the PEs
    /// outnumber the allowed processors.
    #[must_use]
    pub fn levels_of(&self, pes: usize) -> Vec<[u32; 3]> {
        let levels = |id: CpuId| {
            let cpu = self.cpus().iter().find(|cpu| cpu.id == id);
            let [package, node, cache] = cpu.map_or([u32::MAX; 3], |cpu| place(self, cpu));
            [cache, node, package]
        };
        self.placement(pes).into_iter().flatten().map(levels).collect()
    }

    /// Returns all allowed processors in the order in which PEs use them; `None` if `pes` outnumber
    /// them. If `first` is given, it precedes the other processors of its core.
    pub fn placement_order(&self, pes: usize, first: Option<CpuId>) -> Option<Vec<CpuId>> {
        Some(order(self, first)).filter(|cpus| pes <= cpus.len())
    }
}

/// Returns all allowed processors in the order of use. On its core, `first` is the first thread.
fn order(topology: &Topology, first: Option<CpuId>) -> Vec<CpuId> {
    let is_allowed = |cpu: &CpuId| topology.allowed().binary_search(cpu).is_ok();
    let cpus: Vec<(&Cpu, CpuPosition)> = topology
        .cpus()
        .iter()
        .filter(|cpu| is_allowed(&cpu.id))
        .map(|cpu| (cpu, place(topology, cpu)))
        .collect();
    let mut cores: Vec<_> = cpus.iter().map(|(cpu, place)| (*place, cpu.core())).collect();
    cores.sort_unstable();
    cores.dedup();
    // The cores of a package, node or cache are next to each other.
    let count = |part: &[u32]| {
        let before = |(place, _): &(CpuPosition, CpuId)| place[..part.len()] < *part;
        let within = |(place, _): &(CpuPosition, CpuId)| place[..part.len()] <= *part;
        cores.partition_point(within) - cores.partition_point(before)
    };
    let rank = |(cpu, place): &(&Cpu, CpuPosition)| {
        let turn = |id: &CpuId| (Some(*id) != first, *id);
        let earlier = cpu.siblings.iter().filter(|sibling| turn(sibling) < turn(&cpu.id));
        let thread = earlier.filter(|sibling| is_allowed(sibling)).count();
        let path = [1, 2, 3].map(|depth| {
            let part = &place[..depth];
            (Reverse(count(part)), part[depth - 1])
        });
        (thread, path, cpu.core(), cpu.id)
    };
    let mut ranked: Vec<_> = cpus.iter().map(|cpu| (rank(cpu), cpu.0.id)).collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, id)| id).collect()
}

fn place(topology: &Topology, cpu: &Cpu) -> CpuPosition {
    let cache = topology.last_level_cache(cpu.id).and_then(|cache| cache.cpus.first());
    [cpu.package, cpu.node, cache.map_or(u32::MAX, |first| first.0)]
}
