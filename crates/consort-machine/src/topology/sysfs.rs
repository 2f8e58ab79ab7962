//! Processors and caches, and the readers of `/sys/devices/system/cpu` and `/proc/cpuinfo`.
//!
//! Every file may be missing: containers hide some, virtual machines lack others.

use crate::affinity::CpuId;
use std::{fs, path::Path};

/// One logical processor and its position in the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub id: CpuId,
    /// The core's number, unique only within its die; [`Cpu::core`] is unique in the machine.
    pub core_id: u32,
    /// The package (socket) that contains it.
    pub package: u32,
    /// The die within the package.
    pub die: u32,
    /// The NUMA node whose memory is nearest.
    pub node: u32,
    /// All processors of its physical core, including itself, in ascending order.
    pub siblings: Vec<CpuId>,
}

impl Cpu {
    /// Returns the physical core, named by its lowest processor.
    #[must_use]
    pub fn core(&self) -> CpuId {
        self.siblings.first().copied().unwrap_or(self.id)
    }
}

/// The contents of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Data and instructions.
    Unified,
}

/// One cache and the processors that share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The level; 1 is the nearest to the core.
    pub level: u32,
    /// The contents.
    pub kind: CacheKind,
    /// The size in bytes; 0 if unknown.
    pub bytes: u64,
    /// The size of a line in bytes; 0 if unknown.
    pub line_bytes: u32,
    /// The associativity, that is, the number of lines in a set; 0 if unknown.
    pub ways: u32,
    /// The processors that share it, in ascending order.
    pub cpus: Vec<CpuId>,
}

/// Returns the processors that are online or in `allowed`, and the caches that serve them.
pub(super) fn read(root: &Path, allowed: &[CpuId]) -> (Vec<Cpu>, Vec<Cache>) {
    let folder = root.join("sys/devices/system/cpu");
    let mut ids = text(&folder, "online").map_or_else(Vec::new, |list| cpu_list(&list));
    ids.extend(allowed);
    ids.sort_unstable();
    ids.dedup();
    let mut caches = Vec::new();
    let mut cpus = Vec::with_capacity(ids.len());
    for id in ids {
        let folder = folder.join(format!("cpu{}", id.0));
        cpus.push(cpu(&folder, id));
        read_caches(&folder, id, &mut caches);
    }
    caches.sort_unstable_by(|a, b| (a.level, a.kind, &a.cpus).cmp(&(b.level, b.kind, &b.cpus)));
    (cpus, caches)
}

/// Returns the processor's name: the model name if `/proc/cpuinfo` has one (x86 and others), the
/// codes of implementer and part if it has those (ARM), otherwise the architecture.
pub(super) fn processor(root: &Path) -> String {
    let cpuinfo = text(root, "proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let value = fields.find(|(key, _)| key.trim() == name)?.1;
        let words: Vec<&str> = value.split_whitespace().collect();
        (!words.is_empty()).then(|| words.join(" "))
    };
    let arm = || {
        let (implementer, part) = (field("CPU implementer")?, field("CPU part")?);
        Some(format!("{} implementer {implementer} part {part}", std::env::consts::ARCH))
    };
    field("model name").or_else(arm).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn cpu(folder: &Path, id: CpuId) -> Cpu {
    let topology = folder.join("topology");
    let number = |name: &str| text(&topology, name)?.parse::<u32>().ok();
    let siblings = text(&topology, "core_cpus_list")
        .or_else(|| text(&topology, "thread_siblings_list"))
        .map(|list| cpu_list(&list))
        .filter(|siblings| siblings.contains(&id));
    Cpu {
        id,
        core_id: number("core_id").unwrap_or(id.0),
        // Missing, or -1 if the firmware does not report it.
        package: number("physical_package_id").unwrap_or(0),
        die: number("die_id").unwrap_or(0),
        node: node(folder).unwrap_or(0),
        siblings: siblings.unwrap_or_else(|| vec![id]),
    }
}

/// Returns the NUMA node: the folder of a processor of node 3 has an entry `node3`.
fn node(folder: &Path) -> Option<u32> {
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("node")?.parse().ok()
    })
}

/// Returns the NUMA node of each processor, by the processor's number; none if the nodes are
/// unknown. Reads one file for each node, so it is faster than reading the topology.
#[cfg(not(loom))]
pub(crate) fn numa_nodes(root: &Path) -> Vec<u32> {
    let folder = root.join("sys/devices/system/node");
    let mut nodes = Vec::new();
    for node in text(&folder, "online").map_or_else(Vec::new, |list| cpu_list(&list)) {
        let cpus = text(&folder.join(format!("node{}", node.0)), "cpulist");
        for cpu in cpus.map_or_else(Vec::new, |list| cpu_list(&list)) {
            let cpu = cpu.0 as usize;
            nodes.resize(nodes.len().max(cpu + 1), 0);
            nodes[cpu] = node.0;
        }
    }
    nodes
}

/// Adds the caches of processor `id` that are not in `caches` yet.
fn read_caches(folder: &Path, id: CpuId, caches: &mut Vec<Cache>) {
    let folder = folder.join("cache");
    for index in (0..).map(|index| folder.join(format!("index{index}"))) {
        if !index.is_dir() {
            return;
        }
        let Some(cache) = cache(&index, id) else { continue };
        if !caches.contains(&cache) {
            caches.push(cache);
        }
    }
}

fn cache(folder: &Path, id: CpuId) -> Option<Cache> {
    let level = text(folder, "level")?.parse().ok()?;
    let kind = match text(folder, "type")?.as_str() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        _ => CacheKind::Unified,
    };
    let cpus = text(folder, "shared_cpu_list").map(|list| cpu_list(&list));
    Some(Cache {
        level,
        kind,
        bytes: text(folder, "size").and_then(|size| bytes(&size)).unwrap_or(0),
        line_bytes: text(folder, "coherency_line_size")
            .and_then(|line| line.parse().ok())
            .unwrap_or(0),
        ways: text(folder, "ways_of_associativity").and_then(|ways| ways.parse().ok()).unwrap_or(0),
        cpus: cpus.filter(|cpus| cpus.contains(&id)).unwrap_or_else(|| vec![id]),
    })
}

/// Parses the kernel's notation for a size: `32768K`.
fn bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &size[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Parses the kernel's notation for a set of processors: `0-3,8`. Malformed parts are skipped.
fn cpu_list(list: &str) -> Vec<CpuId> {
    let mut cpus = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            cpus.extend((first..=last).map(CpuId));
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// Returns the text in a file of the system.
fn text(folder: &Path, name: &str) -> Option<String> {
    Some(fs::read_to_string(folder.join(name)).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_parsed() {
        let ids = |list: &str| cpu_list(list).iter().map(|cpu| cpu.0).collect::<Vec<_>>();
        assert_eq!(ids("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(ids("5"), [5]);
        assert_eq!(ids("7,1-2,2"), [1, 2, 7]);
        assert_eq!(ids(""), []);
        assert_eq!(ids("x,3-y,4"), [4]);
    }

    #[test]
    fn sizes_of_caches_are_parsed() {
        assert_eq!(bytes("32768K"), Some(32 << 20));
        assert_eq!(bytes("512"), Some(512));
        assert_eq!(bytes("12Q"), None);
        assert_eq!(bytes(""), None);
    }
}
