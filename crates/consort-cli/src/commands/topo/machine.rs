//! The parts of a machine for the report: counted, with equal parts together.

use consort_bench::limits::survey::Measured;
use consort_native::{
    affinity::CpuId,
    topology::{Cache, CacheKind, Cpu, Topology},
};
use serde::Serialize;

/// The output of `--json`.
#[derive(Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    pub(super) machine: Machine,
    /// The measurements; null if there are none.
    #[serde(flatten)]
    pub(super) measured: Option<Measured>,
    /// The reason why nothing was measured, unless the budget was 0.
    pub(super) not_measured: Option<String>,
}

/// The data of the machine that needs no measurement.
#[derive(Serialize)]
pub(super) struct Machine {
    pub(super) processor: String,
    pub(super) machine_key: String,
    pub(super) cpus: Vec<Place>,
    pub(super) cores: usize,
    /// The number of threads of the core that has the most.
    pub(super) threads_per_core: usize,
    pub(super) packages: usize,
    pub(super) numa_nodes: usize,
    pub(super) caches: Vec<Caches>,
    pub(super) usable_cores: usize,
    pub(super) limited_by: Option<Limit>,
    pub(super) allowed: Vec<u32>,
    pub(super) quota_cores: Option<f64>,
}

/// The position of a logical processor.
#[derive(Serialize)]
pub(super) struct Place {
    cpu: u32,
    /// The lowest processor of its physical core.
    core: u32,
    package: u32,
    die: u32,
    numa_node: u32,
}

/// Equal caches of different processors.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub(super) struct Caches {
    pub(super) level: u32,
    pub(super) kind: &'static str,
    pub(super) bytes: u64,
    pub(super) line_bytes: u32,
    /// The number of processors that share one cache.
    pub(super) shared_by: usize,
    pub(super) count: usize,
}

/// The reason why fewer cores are usable than there are processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Limit {
    /// The affinity mask excludes processors.
    Affinity,
    /// A cgroup's quota is less than the time of the allowed processors.
    Quota,
}

impl Machine {
    pub(super) fn of(topology: &Topology) -> Machine {
        let (cpus, allowed) = (topology.cpus(), topology.allowed());
        let usable_cores = topology.usable_cores();
        let limited_by = if usable_cores < allowed.len() {
            Some(Limit::Quota)
        } else {
            (allowed.len() < cpus.len()).then_some(Limit::Affinity)
        };
        Machine {
            processor: topology.processor().to_owned(),
            machine_key: topology.machine_key(),
            cpus: cpus.iter().map(place).collect(),
            cores: topology.cores(),
            threads_per_core: cpus.iter().map(|cpu| cpu.siblings.len()).max().unwrap_or(1),
            packages: topology.packages(),
            numa_nodes: topology.nodes(),
            caches: alike(topology.caches()),
            usable_cores,
            limited_by,
            allowed: allowed.iter().map(|cpu| cpu.0).collect(),
            quota_cores: topology.quota_cores(),
        }
    }
}

fn place(cpu: &Cpu) -> Place {
    let CpuId(core) = cpu.core();
    Place { cpu: cpu.id.0, core, package: cpu.package, die: cpu.die, numa_node: cpu.node }
}

fn alike(caches: &[Cache]) -> Vec<Caches> {
    let mut groups: Vec<Caches> = Vec::new();
    for cache in caches {
        let one = Caches {
            level: cache.level,
            kind: match cache.kind {
                CacheKind::Data => "data",
                CacheKind::Instruction => "instruction",
                CacheKind::Unified => "unified",
            },
            bytes: cache.bytes,
            line_bytes: cache.line_bytes,
            shared_by: cache.cpus.len(),
            count: 0,
        };
        let index = groups.iter().position(|group| Caches { count: 0, ..group.clone() } == one);
        let index = index.unwrap_or_else(|| {
            groups.push(one);
            groups.len() - 1
        });
        groups[index].count += 1;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn alike_caches_are_counted_together() {
        let cache = |level, bytes, first: u32| Cache {
            level,
            kind: CacheKind::Unified,
            bytes,
            line_bytes: 64,
            ways: 8,
            cpus: vec![CpuId(first), CpuId(first + 1)],
        };
        let groups = alike(&[cache(2, 1024, 0), cache(2, 512, 2), cache(2, 1024, 4)]);
        let counts: Vec<_> = groups.iter().map(|group| (group.bytes, group.count)).collect();
        assert_eq!(counts, [(1024, 2), (512, 1)]);
        assert_eq!(groups[0].shared_by, 2);
    }

    #[test]
    fn limits_are_explained() {
        let nowhere = Path::new("/nowhere/at/all");
        let machine = Machine::of(&Topology::from_root(nowhere, &[CpuId(0), CpuId(1)]));
        assert_eq!((machine.usable_cores, machine.limited_by), (2, None));
        let folder = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file("sys/devices/system/cpu/online", "0-3\n");
        let machine = Machine::of(&Topology::from_root(folder.path(), &[CpuId(0), CpuId(1)]));
        assert_eq!((machine.usable_cores, machine.limited_by), (2, Some(Limit::Affinity)));
        file("sys/fs/cgroup/cpu.max", "50000 100000\n");
        let machine = Machine::of(&Topology::from_root(folder.path(), &[CpuId(0), CpuId(1)]));
        assert_eq!((machine.usable_cores, machine.limited_by), (1, Some(Limit::Quota)));
    }
}
