//! The topology of this machine, and the part of it that this process may use.

use std::path::Path;

use super::{
    quota::{self, Quota},
    sysfs::{self, Cache, CacheKind, Cpu},
};
use crate::affinity::{self, CpuId};

/// A machine as one process sees it.
#[derive(Clone, Debug)]
pub struct Topology {
    processor: String,
    cpus: Vec<Cpu>,
    caches: Vec<Cache>,
    allowed: Vec<CpuId>,
    quota: Option<Quota>,
}

impl Topology {
    /// Reads this machine's topology, as the process may use it.
    #[must_use]
    pub fn discover() -> Topology {
        Topology::from_root(Path::new("/"), &affinity::allowed_to_process())
    }

    /// Returns the same machine as the launcher of this process may use it. The launcher may have
    /// bound this process to part of the machine.
    #[must_use]
    pub fn of_launcher(&self) -> Topology {
        Topology { allowed: affinity::allowed_to_launcher(), ..self.clone() }
    }

    /// Reads `sys` and `proc` under `root`, for a process that may run on `allowed`.
    #[must_use]
    pub fn from_root(root: &Path, allowed: &[CpuId]) -> Topology {
        let (cpus, caches) = sysfs::read(root, allowed);
        Topology {
            processor: sysfs::processor(root),
            cpus,
            caches,
            allowed: allowed.to_vec(),
            quota: quota::tightest(root),
        }
    }

    /// Returns the processor's name as its vendor gives it.
    #[must_use]
    pub fn processor(&self) -> &str {
        &self.processor
    }

    /// Returns all online processors, ordered by number.
    #[must_use]
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// Returns all caches, each once, ordered by level.
    #[must_use]
    pub fn caches(&self) -> &[Cache] {
        &self.caches
    }

    /// Returns the processors that the affinity mask allows, ordered by number.
    #[must_use]
    pub fn allowed(&self) -> &[CpuId] {
        &self.allowed
    }

    /// Returns the processors of the core of `cpu`.
    pub fn siblings(&self, cpu: CpuId) -> &[CpuId] {
        self.cpus.iter().find(|one| one.id == cpu).map_or(&[], |one| &one.siblings)
    }

    /// Returns the last-level data cache of `cpu`, if known.
    #[must_use]
    pub fn last_level_cache(&self, cpu: CpuId) -> Option<&Cache> {
        self.caches
            .iter()
            .filter(|cache| cache.kind != CacheKind::Instruction && cache.cpus.contains(&cpu))
            .max_by_key(|cache| cache.level)
    }

    /// Returns the number of physical cores.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.distinct(|cpu| cpu.core().0)
    }

    /// Returns the number of packages (sockets).
    #[must_use]
    pub fn packages(&self) -> usize {
        self.distinct(|cpu| cpu.package)
    }

    /// Returns the number of NUMA nodes that have processors.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.distinct(|cpu| cpu.node)
    }

    fn distinct(&self, of: impl Fn(&Cpu) -> u32) -> usize {
        let mut all: Vec<u32> = self.cpus.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    }

    /// Returns the processor time that the cgroups grant, in cores: the tightest quota of the
    /// process's cgroup and its ancestors. `None` if there is no quota.
    #[must_use]
    pub fn quota_cores(&self) -> Option<f64> {
        self.quota.map(Quota::cores)
    }

    /// Returns how many threads can each have a processor to themselves: the number of allowed
    /// processors, at least one. All of them run at the same time until a quota is used up.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.allowed.len().max(1)
    }

    /// Returns how many threads can run all the time: the number of allowed processors, or the
    /// quota rounded up if that is less. At least one.
    #[must_use]
    pub fn usable_cores(&self) -> usize {
        let granted = self.quota.map_or(usize::MAX, Quota::cores_rounded_up);
        self.allowed.len().min(granted).max(1)
    }

    /// Returns a short name for this kind of machine, for example
    /// `AMD EPYC, 2 cpus, 2 cores, 1 package, quota none`. Equal machines have the same name, at
    /// each start. If the affinity mask excludes processors, the allowed number follows the total.
    #[must_use]
    pub fn machine_key(&self) -> String {
        let mut cpus = counted(self.cpus.len(), "cpu");
        if self.allowed.len() != self.cpus.len() {
            cpus = format!("{cpus} ({} allowed)", self.allowed.len());
        }
        let cores = counted(self.cores(), "core");
        let packages = counted(self.packages(), "package");
        let quota = self.quota_cores().map_or("none".to_owned(), |cores| cores.to_string());
        format!("{}, {cpus}, {cores}, {packages}, quota {quota}", self.processor)
    }
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
