//! The numbers of this machine's parts, such as cores and caches, and the page that shows them.
//! Equal parts are grouped.

use consort_bench::{
    page::Page,
    units::{counted, size},
};
use consort_machine::{
    affinity::CpuId,
    topology::{Cache, CacheKind, Cpu, Topology},
    usage::LargePages,
};
use consort_native::obtains_large_page;
use serde::Serialize;

/// The data of the machine that needs no measurement.
#[derive(Serialize)]
pub struct MachineInfo {
    processor: String,
    machine_key: String,
    cpus: Vec<CpuPosition>,
    cores: usize,
    /// The number of threads of the core that has the most.
    threads_per_core: usize,
    packages: usize,
    numa_nodes: usize,
    caches: Vec<Caches>,
    usable_cores: usize,
    limited_by: Option<CoreLimit>,
    allowed: Vec<u32>,
    quota_cores: Option<f64>,
    large_pages: Option<HugePageSettings>,
}

/// The system's settings of huge pages.
#[derive(Serialize)]
struct HugePageSettings {
    private: String,
    shared: String,
    /// Whether a trial has obtained one in memory that processes share.
    shared_obtained: Option<bool>,
}

/// The position of a logical processor.
#[derive(Serialize)]
pub struct CpuPosition {
    cpu: u32,
    /// The lowest processor of its physical core.
    core: u32,
    package: u32,
    die: u32,
    numa_node: u32,
}

/// Equal caches of different processors.
#[derive(Clone, PartialEq, Eq, Serialize)]
struct Caches {
    level: u32,
    kind: &'static str,
    bytes: u64,
    line_bytes: u32,
    /// The number of processors that share one cache.
    shared_by: usize,
    count: usize,
}

/// The reason why fewer cores are usable than there are processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CoreLimit {
    /// The affinity mask excludes processors.
    Affinity,
    /// A cgroup's quota is less than the time of the allowed processors.
    Quota,
}

impl MachineInfo {
    /// Describes this machine.
    pub fn of(topology: &Topology) -> MachineInfo {
        let (cpus, allowed) = (topology.cpus(), topology.allowed());
        let usable_cores = topology.usable_cores();
        let limited_by = if usable_cores < allowed.len() {
            Some(CoreLimit::Quota)
        } else {
            (allowed.len() < cpus.len()).then_some(CoreLimit::Affinity)
        };
        MachineInfo {
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
            large_pages: LargePages::of_system().map(|LargePages { private, shared }| {
                HugePageSettings { private, shared, shared_obtained: obtains_large_page() }
            }),
        }
    }

    /// Adds the description to a page.
    pub fn show(&self, page: &mut Page) {
        page.lines(counts(self));
        page.lines(large_pages(self.large_pages.as_ref()));
        page.lines("\n");
        caches(page, &self.caches);
    }
}

fn large_pages(pages: Option<&HugePageSettings>) -> String {
    let Some(HugePageSettings { private, shared, shared_obtained }) = pages else {
        return "no large pages\n".to_owned();
    };
    let hint = match &**shared {
        "never" | "deny" => format!("; {} decides", LargePages::SHARED),
        _ => match shared_obtained {
            Some(true) => " (obtained)".to_owned(),
            Some(false) => " (not obtained in a trial)".to_owned(),
            None => String::new(),
        },
    };
    format!("large pages: private memory {private}, shared memory {shared}{hint}\n")
}

fn place(cpu: &Cpu) -> CpuPosition {
    let CpuId(core) = cpu.core();
    CpuPosition { cpu: cpu.id.0, core, package: cpu.package, die: cpu.die, numa_node: cpu.node }
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

fn counts(machine: &MachineInfo) -> String {
    let MachineInfo { processor, cores, threads_per_core, packages, numa_nodes, .. } = machine;
    let cpus = machine.cpus.len();
    let threads = if *threads_per_core > 1 {
        format!(" of up to {threads_per_core} threads")
    } else {
        String::new()
    };
    format!(
        "{processor}\n{} on {}{threads}, {}, {}\n{}\n",
        counted(cpus, "processor"),
        counted(*cores, "core"),
        counted(*packages, "package"),
        counted(*numa_nodes, "NUMA node"),
        usable(machine),
    )
}

/// Returns the number of usable cores, and the reason.
fn usable(machine: &MachineInfo) -> String {
    let cpus = machine.cpus.len();
    let quota = machine.quota_cores.map(|cores| format!("a cgroup's quota of {cores} cores"));
    let allowed = format!("{} of {cpus} ({})", machine.allowed.len(), ranges(&machine.allowed));
    let why = match (machine.limited_by, quota) {
        (Some(CoreLimit::Quota), Some(quota)) => format!("{quota}; processors allowed: {allowed}"),
        (Some(_), Some(quota)) => format!("processors allowed: {allowed}; {quota} has no effect"),
        (Some(_), None) => format!("processors allowed: {allowed}; no quota"),
        (None, Some(quota)) => format!("all processors are allowed; {quota} has no effect"),
        (None, None) => "all processors are allowed; no quota".to_owned(),
    };
    format!("{}: {why}", counted(machine.usable_cores, "usable core"))
}

fn caches(page: &mut Page, caches: &[Caches]) {
    let row = |cache: &Caches| {
        vec![
            format!("L{} {}", cache.level, cache.kind),
            size(cache.bytes),
            format!("{} B", cache.line_bytes),
            cache.count.to_string(),
            cache.shared_by.to_string(),
        ]
    };
    let header = ["cache", "size", "line", "count", "processors each"];
    page.table(header, caches.iter().map(row).collect(), 1..5);
}

/// Returns ranges of numbers as the kernel writes them: `0-3,8`.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run.iter().map(u32::to_string).collect(),
    });
    runs.collect::<Vec<String>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn equal_caches_are_counted_together() {
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
        let machine = MachineInfo::of(&Topology::from_root(nowhere, &[CpuId(0), CpuId(1)]));
        assert_eq!((machine.usable_cores, machine.limited_by), (2, None));
        let folder = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file("sys/devices/system/cpu/online", "0-3\n");
        let machine = MachineInfo::of(&Topology::from_root(folder.path(), &[CpuId(0), CpuId(1)]));
        assert_eq!((machine.usable_cores, machine.limited_by), (2, Some(CoreLimit::Affinity)));
        file("sys/fs/cgroup/cpu.max", "50000 100000\n");
        let machine = MachineInfo::of(&Topology::from_root(folder.path(), &[CpuId(0), CpuId(1)]));
        assert_eq!((machine.usable_cores, machine.limited_by), (1, Some(CoreLimit::Quota)));
    }

    fn limited(usable_cores: usize, limited_by: Option<CoreLimit>, quota: Option<f64>) -> String {
        let topology = consort_machine::topology::Topology::from_root(
            std::path::Path::new("/nowhere/at/all"),
            &[0, 1, 2, 5].map(consort_machine::affinity::CpuId),
        );
        let machine = MachineInfo::of(&topology);
        usable(&MachineInfo { usable_cores, limited_by, quota_cores: quota, ..machine })
    }

    #[test]
    fn usable_cores_have_their_reason() {
        let all = "4 usable cores: all processors are allowed; no quota";
        assert_eq!(limited(4, None, None), all);
        let quota = "1 usable core: a cgroup's quota of 0.5 cores; processors allowed: 4 of 4 \
                     (0-2,5)";
        assert_eq!(limited(1, Some(CoreLimit::Quota), Some(0.5)), quota);
        assert!(limited(4, None, Some(8.0)).ends_with("quota of 8 cores has no effect"));
        let mask = limited(4, Some(CoreLimit::Affinity), None);
        assert_eq!(mask, "4 usable cores: processors allowed: 4 of 4 (0-2,5); no quota");
    }

    #[test]
    fn consecutive_numbers_become_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn columns_of_numbers_are_aligned() {
        let one = Caches {
            level: 1,
            kind: "data",
            bytes: 32 << 10,
            line_bytes: 64,
            shared_by: 1,
            count: 16,
        };
        let mut page = Page::default();
        caches(&mut page, &[one]);
        let text = crate::output::page(&page);
        let ends: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(ends[0], ends[1], "{text}");
    }
}
