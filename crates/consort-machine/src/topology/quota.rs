//! The processor time that cgroups grant to this process.
//!
//! Version 2 has one file, `cpu.max`: quota and period in microseconds, or `max`. Version 1 has two
//! files, with -1 for no quota. A limit applies to all cgroups below it, so the process's own
//! cgroup and all its ancestors are read, and the tightest limit counts. A machine may mount both
//! versions; the paths are the usual ones.

use std::{
    cmp::Ordering,
    fs,
    path::{Component, Path},
};

/// The mount points of version 2: alone, or next to version 1.
const V2_MOUNTS: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
/// The mount points of version 1's `cpu` controller.
const V1_MOUNTS: [&str; 2] = ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"];

/// A limit on processor time in each period, both in microseconds. Neither is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quota {
    time_us: u64,
    period_us: u64,
}

impl Quota {
    pub(super) fn cores(self) -> f64 {
        self.time_us as f64 / self.period_us as f64
    }

    pub(super) fn cores_rounded_up(self) -> usize {
        usize::try_from(self.time_us.div_ceil(self.period_us)).unwrap_or(usize::MAX)
    }

    fn compare(self, other: Quota) -> Ordering {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.time_us, other.period_us).cmp(&product(other.time_us, self.period_us))
    }

    fn new(time_us: &str, period_us: &str) -> Option<Quota> {
        let (time_us, period_us) = (time_us.trim().parse().ok()?, period_us.trim().parse().ok()?);
        (time_us > 0 && period_us > 0).then_some(Quota { time_us, period_us })
    }
}

/// Returns the tightest quota on the process whose files are under `root`, if there is any.
pub(super) fn tightest(root: &Path) -> Option<Quota> {
    // If this file of the system is missing, the roots of the mounts are still read.
    let membership = fs::read_to_string(root.join("proc/self/cgroup"));
    let membership = membership.unwrap_or_else(|_| "0::/\n1:cpu:/\n".to_owned());
    let mut quotas = Vec::new();
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        if controllers.is_empty() {
            quotas.extend(V2_MOUNTS.iter().flat_map(|mount| along(&root.join(mount), path, v2)));
        } else if controllers.split(',').any(|controller| controller == "cpu") {
            quotas.extend(V1_MOUNTS.iter().flat_map(|mount| along(&root.join(mount), path, v1)));
        }
    }
    quotas.into_iter().min_by(|a, b| a.compare(*b))
}

/// Returns the quotas of the cgroup `path` and all its ancestors.
///
/// Missing folders are skipped: a container may see the path that the host uses, under a mount that
/// begins at the container's cgroup.
fn along(mount: &Path, path: &str, read: fn(&Path) -> Option<Quota>) -> Vec<Quota> {
    let mut folder = mount.to_owned();
    let mut quotas: Vec<Quota> = read(&folder).into_iter().collect();
    for component in Path::new(path).components() {
        if let Component::Normal(name) = component {
            folder.push(name);
            quotas.extend(read(&folder));
        }
    }
    quotas
}

/// Reads the quota in the files of the system, version 2.
fn v2(folder: &Path) -> Option<Quota> {
    let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
    let (time_us, period_us) = text.trim().split_once(' ')?;
    Quota::new(time_us, period_us)
}

/// Reads the quota in the files of the system, version 1.
fn v1(folder: &Path) -> Option<Quota> {
    let time_us = fs::read_to_string(folder.join("cpu.cfs_quota_us")).ok()?;
    let period_us = fs::read_to_string(folder.join("cpu.cfs_period_us")).ok()?;
    Quota::new(&time_us, &period_us)
}
