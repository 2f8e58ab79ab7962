//! The layout of the usable cores, in the form of a description.

use std::collections::BTreeSet;

use consort_machine::{
    affinity::CpuId,
    topology::{CacheKind, Topology},
};

/// The largest number of pairs of cores to measure for one distance.
const PAIRS: usize = 4;
/// The defaults if the machine does not report the size.
const USUAL_LINE_BYTES: usize = 64;
const USUAL_WAYS: usize = 8;
const USUAL_BYTES: usize = 1 << 20;

/// The cores that a job uses, with one thread on each, in the order of its ranks.
pub struct Plan {
    pub(super) cpus: Vec<CpuId>,
    pub(super) packages: usize,
    pub(super) dies_per_package: usize,
    pub(super) cores_per_die: usize,
    pub(super) line_bytes: usize,
    /// The caches, from near to far. If the machine reports none, one cache of the default size.
    pub(super) caches: Vec<Cache>,
    /// The distances, from near to far.
    pub(super) distances: Vec<Distance>,
}

/// A level of the caches.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cache {
    /// `None` if the machine does not report it.
    pub(super) level: Option<u32>,
    pub(super) bytes: usize,
    pub(super) ways: usize,
    /// The number of cores that share one cache.
    pub(super) cores: usize,
}

/// Pairs of cores at the same distance.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Distance {
    pub(super) name: &'static str,
    pub(super) pairs: Vec<(CpuId, CpuId)>,
}

/// Returns the number of parts in each larger part, if all have the same number.
fn each(parts: impl Iterator<Item = usize>) -> Option<usize> {
    let mut parts: Vec<usize> = parts.collect();
    parts.dedup();
    if let [count] = parts[..] { Some(count) } else { None }
}

impl Plan {
    /// Returns the layout of a machine's cores.
    pub fn of(topology: &Topology) -> Self {
        let placed = topology.placement(topology.usable_cores()).unwrap_or_default();
        // A second thread of a core is placed after all cores are taken. It does not count as
        // another core.
        let mut cores = BTreeSet::new();
        let mut cpus = Vec::new();
        for &id in &placed {
            let Some(cpu) = topology.cpus().iter().find(|cpu| cpu.id == id) else { continue };
            let die = topology.last_level_cache(id).and_then(|cache| cache.cpus.first());
            if cores.insert(cpu.core()) {
                cpus.push((id, cpu.package, die.copied()));
            }
        }
        let mut dies: Vec<(u32, Option<CpuId>, Vec<CpuId>)> = Vec::new();
        for (id, package, die) in cpus {
            match dies.last_mut() {
                Some(last) if (last.0, last.1) == (package, die) => last.2.push(id),
                _ => dies.push((package, die, vec![id])),
            }
        }
        let all: Vec<CpuId> = dies.iter().flat_map(|die| die.2.clone()).collect();
        let package_numbers: Vec<u32> = dies.iter().map(|die| die.0).collect();
        let per_package =
            each(package_numbers.chunk_by(|one, other| one == other).map(<[u32]>::len));
        let per_die = each(dies.iter().map(|die| die.2.len()));
        // If parts have unequal sizes, all cores count as one part.
        let (packages, dies_per_package, cores_per_die) = match (per_package, per_die) {
            (Some(dies_each), Some(cores_each)) => (dies.len() / dies_each, dies_each, cores_each),
            _ => (1, 1, all.len()),
        };
        let mut plan = Self {
            packages,
            dies_per_package,
            cores_per_die,
            line_bytes: USUAL_LINE_BYTES,
            caches: Vec::new(),
            distances: Vec::new(),
            cpus: all,
        };
        plan.distances = plan.distances();
        plan.read_caches(topology);
        plan
    }

    fn distances(&self) -> Vec<Distance> {
        let die = self.cores_per_die;
        let package = die * self.dies_per_package;
        // For each distance, the pairs of the first and the last core of a part, in different
        // positions.
        let pairs = |count: usize, part: usize, inner: usize| {
            let steps = (count / part).clamp(1, PAIRS);
            let pairs = (0..steps).map(|step| {
                let first = step * (count / part) / steps * part;
                (self.cpus[first], self.cpus[first + part - 1 - step % inner])
            });
            pairs.collect::<Vec<_>>()
        };
        let count = self.cpus.len();
        let kinds = [("die", die, 1), ("package", package, die), ("1 hop", count, package)];
        let there = kinds.into_iter().filter(|&(_, part, inner)| part > inner);
        there
            .map(|(name, part, inner)| Distance { name, pairs: pairs(count, part, inner) })
            .collect()
    }

    fn read_caches(&mut self, topology: &Topology) {
        let Some(&first) = self.cpus.first() else { return };
        let serving = topology
            .caches()
            .iter()
            .filter(|cache| cache.kind != CacheKind::Instruction && cache.cpus.contains(&first));
        for cache in serving {
            let bytes = usize::try_from(cache.bytes).unwrap_or(0);
            let line_bytes = usize::try_from(cache.line_bytes).unwrap_or(0);
            if line_bytes > 0 {
                self.line_bytes = line_bytes;
            }
            let sharing = self.cpus.iter().filter(|cpu| cache.cpus.contains(cpu)).count();
            let ways = usize::try_from(cache.ways).unwrap_or(0);
            let ways = if ways == 0 { USUAL_WAYS } else { ways };
            let set_bytes = ways * self.line_bytes;
            if bytes >= set_bytes && self.cpus.len().is_multiple_of(sharing) {
                let bytes = bytes / set_bytes * set_bytes;
                let level = Some(cache.level);
                self.caches.push(Cache { level, bytes, ways, cores: sharing });
            }
        }
        if self.caches.is_empty() {
            let (bytes, ways) = (USUAL_BYTES, USUAL_WAYS);
            self.caches.push(Cache { level: None, bytes, ways, cores: 1 });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns a machine with packages of dies of cores, with two threads each, as Linux describes
    /// it in its files.
    fn machine(packages: u32, dies: u32, cores: u32, allowed: &[u32]) -> Topology {
        let root = tempfile::tempdir().unwrap();
        let count = packages * dies * cores;
        for cpu in 0..2 * count {
            let core = cpu % count;
            let die = core / cores;
            let folder = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}"));
            let list = |cores: std::ops::Range<u32>| {
                let ids: Vec<u32> = cores.flat_map(|core| [core, core + count]).collect();
                ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
            };
            let (alone, all) = (list(core..core + 1), list(die * cores..(die + 1) * cores));
            let facts = [
                ("topology/core_id", core.to_string()),
                ("topology/physical_package_id", (die / dies).to_string()),
                ("topology/core_cpus_list", alone.clone()),
                ("cache/index0/level", "1".to_owned()),
                ("cache/index0/type", "Data".to_owned()),
                ("cache/index0/size", "48K".to_owned()),
                ("cache/index0/ways_of_associativity", "12".to_owned()),
                ("cache/index0/coherency_line_size", "64".to_owned()),
                ("cache/index0/shared_cpu_list", alone),
                ("cache/index1/level", "3".to_owned()),
                ("cache/index1/type", "Unified".to_owned()),
                ("cache/index1/size", "16384K".to_owned()),
                ("cache/index1/shared_cpu_list", all),
            ];
            for (name, value) in facts {
                let path = folder.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, value).unwrap();
            }
        }
        let online = root.path().join("sys/devices/system/cpu/online");
        fs::write(online, format!("0-{}", 2 * count - 1)).unwrap();
        let allowed: Vec<CpuId> = allowed.iter().copied().map(CpuId).collect();
        Topology::from_root(root.path(), &allowed)
    }

    #[test]
    fn plan_describes_packages_of_dies_of_cores() {
        let all: Vec<u32> = (0..32).collect();
        let plan = Plan::of(&machine(2, 2, 4, &all));
        assert_eq!(plan.cpus, (0..16).map(CpuId).collect::<Vec<_>>());
        assert_eq!((plan.packages, plan.dies_per_package, plan.cores_per_die), (2, 2, 4));
        let names: Vec<&str> = plan.distances.iter().map(|distance| distance.name).collect();
        assert_eq!(names, ["die", "package", "1 hop"]);
        let pair = |a, b| (CpuId(a), CpuId(b));
        assert_eq!(plan.distances[0].pairs, [pair(0, 3), pair(4, 7), pair(8, 11), pair(12, 15)]);
        assert_eq!(plan.distances[1].pairs, [pair(0, 7), pair(8, 14)]);
        assert_eq!(plan.distances[2].pairs, [pair(0, 15)]);
        let first = Cache { level: Some(1), bytes: 48 << 10, ways: 12, cores: 1 };
        let last = Cache { level: Some(3), bytes: 16 << 20, ways: USUAL_WAYS, cores: 4 };
        assert_eq!(plan.caches, [first, last]);
    }

    #[test]
    fn unequal_parts_are_described_as_one() {
        let plan = Plan::of(&machine(2, 1, 2, &[0, 1, 2]));
        assert_eq!((plan.packages, plan.dies_per_package, plan.cores_per_die), (1, 1, 3));
        assert_eq!(plan.distances.len(), 1);
    }

    #[test]
    fn one_core_has_no_distance() {
        let plan = Plan::of(&machine(1, 1, 1, &[0, 1]));
        assert_eq!((plan.cpus.len(), plan.distances.len(), plan.caches.len()), (1, 0, 2));
    }
}
