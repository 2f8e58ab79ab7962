//! Tests on machines described by files in a temporary folder.

use super::{
    machine::Topology,
    sysfs::{CacheKind, numa_nodes},
};
use crate::{
    affinity::{self, CpuId},
    cores::choose,
};

use std::fs;
use tempfile::TempDir;

struct FakeMachine {
    root: TempDir,
}

impl FakeMachine {
    fn new() -> FakeMachine {
        FakeMachine { root: TempDir::new().unwrap() }
    }

    fn file(&self, path: &str, text: &str) -> &FakeMachine {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    fn allow(&self, cpus: &[u32]) -> Topology {
        let allowed: Vec<CpuId> = cpus.iter().copied().map(CpuId).collect();
        Topology::from_root(self.root.path(), &allowed)
    }
}

/// 2 packages x 2 cores x 2 threads. As on real machines, all first threads are numbered before the
/// second threads: the core of cpu 1 also has cpu 5. Package 0 has cpus 0, 1, 4, 5.
fn two_sockets() -> FakeMachine {
    let machine = FakeMachine::new();
    machine.file("sys/devices/system/cpu/online", "0-7");
    machine.file("proc/cpuinfo", "processor : 0\nmodel name\t:  Example   9000 \nmodel name : no");
    for cpu in 0..8 {
        let (core, package) = (cpu % 4, cpu % 4 / 2);
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        let shared = if package == 0 { "0-1,4-5" } else { "2-3,6-7" };
        let siblings = format!("{core},{}", core + 4);
        let facts = [
            ("topology/core_id", (core % 2).to_string()),
            ("topology/physical_package_id", package.to_string()),
            ("topology/die_id", "0".to_owned()),
            ("topology/core_cpus_list", siblings.clone()),
            (&format!("node{package}/cpulist"), shared.to_owned()),
            ("cache/index0/level", "1".to_owned()),
            ("cache/index0/type", "Data".to_owned()),
            ("cache/index0/size", "32K".to_owned()),
            ("cache/index0/coherency_line_size", "64".to_owned()),
            ("cache/index0/ways_of_associativity", "8".to_owned()),
            ("cache/index0/shared_cpu_list", siblings),
            ("cache/index1/level", "3".to_owned()),
            ("cache/index1/type", "Unified".to_owned()),
            ("cache/index1/size", "16384K".to_owned()),
            ("cache/index1/shared_cpu_list", shared.to_owned()),
        ];
        for (name, value) in &facts {
            machine.file(&format!("{folder}/{name}"), value);
        }
    }
    machine
}

const ALL: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

fn placed(topology: &Topology, pes: usize) -> Option<Vec<u32>> {
    Some(topology.placement(pes)?.iter().map(|cpu| cpu.0).collect())
}

/// The cores of a cache are adjacent, and their second threads come after all of them.
#[test]
fn pes_fill_caches_in_blocks() {
    let machine = two_sockets();
    let topology = machine.allow(&[0, 1, 2, 3, 4, 5, 6, 7]);
    // Cache, NUMA node and package.
    let (first, second) = ([0, 0, 0], [2, 1, 1]);
    assert_eq!(topology.levels_of(2), [first; 2]);
    assert_eq!(topology.levels_of(3), [first, first, second]);
    assert_eq!(topology.levels_of(4), [first, first, second, second]);
    assert_eq!(topology.levels_of(1000), [first; 0], "they share cores");
    assert_eq!(machine.allow(&[0, 1, 4, 5]).levels_of(2), [first; 2]);
    assert_eq!(machine.allow(&[0, 2]).levels_of(2), [first, second]);
}

#[test]
fn the_sibling_of_a_given_processor_comes_late() {
    let topology = two_sockets().allow(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let cpus = |pes, first: Option<u32>, busy: &[u32]| {
        let used: Vec<u32> = (0..8).map(|cpu| u32::from(busy.contains(&cpu))).collect();
        let cpus = choose(&topology, pes, first.map(CpuId), &used).unwrap();
        cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>()
    };
    assert_eq!(cpus(4, Some(5), &[]), [5, 0, 2, 3], "the core of 5 is that of 1");
    assert_eq!(cpus(4, Some(1), &[]), [1, 0, 2, 3]);
    assert_eq!(cpus(4, None, &[4]), [1, 2, 3, 0], "4 has the core of 0");
    assert_eq!(cpus(2, None, &[0, 1, 2, 3]), [4, 5], "all cores are shared");
}

#[test]
fn two_sockets_are_read() {
    let topology = two_sockets().allow(&ALL);
    assert_eq!((topology.cpus().len(), topology.cores()), (8, 4));
    assert_eq!((topology.packages(), topology.nodes()), (2, 2));
    let cpu = &topology.cpus()[6];
    assert_eq!((cpu.core_id, cpu.package, cpu.die, cpu.node), (0, 1, 0, 1));
    assert_eq!((cpu.core(), cpu.siblings.as_slice()), (CpuId(2), [CpuId(2), CpuId(6)].as_slice()));
    assert_eq!(topology.caches().len(), 4 + 2);
    let cache = topology.last_level_cache(CpuId(6)).unwrap();
    assert_eq!((cache.level, cache.kind, cache.bytes), (3, CacheKind::Unified, 16 << 20));
    assert_eq!(cache.cpus, [2, 3, 6, 7].map(CpuId));
    assert_eq!((topology.caches()[0].line_bytes, topology.caches()[0].ways), (64, 8));
    assert_eq!(cache.ways, 0, "which the file of no cache says");
    assert_eq!(topology.machine_key(), "Example 9000, 8 cpus, 4 cores, 2 packages, quota none");
}

#[test]
fn cores_are_placed_before_threads_and_near_ones_together() {
    let topology = two_sockets().allow(&ALL);
    assert_eq!(placed(&topology, 2).unwrap(), [0, 1]);
    assert_eq!(placed(&topology, 4).unwrap(), [0, 1, 2, 3]);
    assert_eq!(placed(&topology, 8).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(placed(&topology, 9), None);
    assert_eq!(placed(&topology, 0).unwrap(), []);
}

/// One core of package 0 and both of package 1. The last core has only its second thread.
#[test]
fn the_package_with_most_cores_comes_first() {
    let topology = two_sockets().allow(&[1, 2, 5, 7]);
    assert_eq!(placed(&topology, 2).unwrap(), [2, 7]);
    assert_eq!(placed(&topology, 4).unwrap(), [2, 7, 1, 5]);
    let key = "Example 9000, 8 cpus (4 allowed), 4 cores, 2 packages, quota none";
    assert_eq!(topology.machine_key(), key);
}

#[test]
fn a_machine_without_files_still_has_its_processors() {
    let topology = FakeMachine::new().allow(&[0, 3]);
    assert_eq!((topology.cpus().len(), topology.cores(), topology.packages()), (2, 2, 1));
    assert_eq!(topology.processor(), std::env::consts::ARCH);
    assert!(topology.caches().is_empty());
    assert_eq!(topology.last_level_cache(CpuId(0)), None);
    assert_eq!(topology.usable_cores(), 2);
    assert_eq!(placed(&topology, 2).unwrap(), [0, 3]);
}

#[test]
fn missing_and_odd_files_are_passed_over() {
    let machine = two_sockets();
    let folder = "sys/devices/system/cpu/cpu6";
    fs::remove_dir_all(machine.root.path().join(folder)).unwrap();
    machine.file(&format!("{folder}/topology/physical_package_id"), "-1");
    machine.file(&format!("{folder}/topology/thread_siblings_list"), "2");
    machine.file(&format!("{folder}/cache/index0/level"), "first");
    let cpu = machine.allow(&ALL).cpus()[6].clone();
    assert_eq!((cpu.core_id, cpu.package, cpu.node, cpu.core()), (6, 0, 0, CpuId(6)));
}

#[test]
fn arm_is_named_by_part() {
    let machine = FakeMachine::new();
    machine.file("proc/cpuinfo", "CPU implementer : 0x41\nCPU part : 0xd0c");
    let processor = machine.allow(&[0]).processor().to_owned();
    assert!(processor.ends_with("implementer 0x41 part 0xd0c"), "{processor}");
}

#[test]
fn the_tightest_quota_of_version_2_counts() {
    let machine = two_sockets();
    machine.file("proc/self/cgroup", "0::/outer/inner");
    machine.file("sys/fs/cgroup/outer/inner/cpu.max", "max 100000");
    assert_eq!(machine.allow(&ALL).quota_cores(), None);
    machine.file("sys/fs/cgroup/outer/inner/cpu.max", "600000 100000");
    machine.file("sys/fs/cgroup/outer/cpu.max", "125000 50000");
    let topology = machine.allow(&ALL);
    assert_eq!(topology.quota_cores(), Some(2.5));
    assert_eq!(topology.usable_cores(), 3);
    // A quota makes no threads share a processor.
    let processors = topology.processors();
    assert_eq!(processors, ALL.len());
    assert!(placed(&topology, processors).is_some() && placed(&topology, processors + 1).is_none());
    assert!(topology.machine_key().ends_with("quota 2.5"));
}

#[test]
fn version_1_quota_counts_if_version_2_is_empty() {
    let machine = two_sockets();
    machine.file("proc/self/cgroup", "3:cpuset:/\n2:cpu,cpuacct:/docker/0a1b\n0::/docker/0a1b");
    machine.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
    machine.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
    assert_eq!(machine.allow(&ALL).quota_cores(), None);
    machine.file("sys/fs/cgroup/cpu,cpuacct/docker/0a1b/cpu.cfs_quota_us", "50000");
    machine.file("sys/fs/cgroup/cpu,cpuacct/docker/0a1b/cpu.cfs_period_us", "100000");
    let topology = machine.allow(&ALL);
    assert_eq!(topology.quota_cores(), Some(0.5));
    assert_eq!(topology.usable_cores(), 1);
}

#[test]
fn this_machine_is_coherent() {
    let topology = Topology::discover();
    assert_eq!(topology.allowed(), affinity::allowed());
    assert!(topology.cores() <= topology.cpus().len());
    let usable = topology.processors();
    let mut cpus = topology.placement(usable).unwrap();
    cpus.sort_unstable();
    cpus.dedup();
    assert_eq!(cpus.len(), usable);
    assert_eq!(topology.placement(usable + 1), None);
}

#[test]
fn processors_have_the_numa_nodes_of_the_folders_of_nodes() {
    let machine = FakeMachine::new();
    assert!(numa_nodes(machine.root.path()).is_empty());
    machine.file("sys/devices/system/node/online", "0,2");
    machine.file("sys/devices/system/node/node0/cpulist", "0-1,4");
    machine.file("sys/devices/system/node/node2/cpulist", "2-3,6");
    assert_eq!(numa_nodes(machine.root.path()), [0, 0, 2, 2, 0, 0, 2]);
}

/// A process that its launcher binds to one processor, as MPI launchers often do.
#[cfg(all(target_os = "linux", not(any(loom, miri, consort_portable))))]
#[test]
fn binding_launcher_hides_no_processors() {
    const BOUND: &str = "TEST_BOUND";
    let cpus = affinity::allowed_to_process();
    if std::env::var_os(BOUND).is_some() {
        let here = Topology::discover();
        assert_eq!((here.allowed().len(), cpus.len()), (1, 1));
        let all = here.of_launcher();
        assert!(all.allowed().len() > 1);
        assert_ne!(all.machine_key(), here.machine_key());
        return;
    }
    if cpus.len() == 1 {
        return;
    }
    let bound = std::thread::spawn(move || {
        affinity::pin(cpus[0]).expect("it is allowed");
        let test = "topology::tests::binding_launcher_hides_no_processors";
        let program = std::env::current_exe().expect("this program");
        std::process::Command::new(program).args(["--exact", test]).env(BOUND, "1").output()
    });
    let output = bound.join().expect("no panic").expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
