//! The conditions under which a program runs: alone, next to busy processes, with more threads than
//! cores, or with a quota of processor time.
//!
//! A quota belongs to a control group, which the process of a launch
//! enters before it creates threads. This process tries to create the group inside its own group,
//! and then inside each group above that. In version 2 the first attempt usually fails, because a
//! group with processes cannot contain groups with quotas.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
};

use anyhow::{Context, Result};
use consort_machine::topology::Topology;

use crate::workloads::busy::BusyProcesses;

/// The file with the processes of a control group. Writing 0 moves the writer there.
const PROCESSES: &str = "cgroup.procs";
/// The period of a quota in microseconds.
const PERIOD_US: usize = 100_000;

consort_fabric::named_enum! {
    /// A condition under which programs run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Condition {
        /// Nothing else runs on purpose.
        Quiet = "quiet",
        /// Next to a busy process.
        OneBusy = "busy-1",
        /// Next to two busy processes.
        TwoBusy = "busy-2",
        /// With twice as many threads.
        DoubleThreads = "threads-2x",
        /// With four times as many threads.
        FourfoldThreads = "threads-4x",
        /// With a quota of half of the cores.
        HalfQuota = "quota-half",
    }
}

impl Condition {
    /// Returns the number of threads, if `threads` is the usual one.
    pub(super) const fn threads(self, threads: u32) -> u32 {
        match self {
            Self::DoubleThreads => 2 * threads,
            Self::FourfoldThreads => 4 * threads,
            _ => threads,
        }
    }

    /// Establishes the condition until the result is dropped.
    ///
    /// # Errors
    /// If a process cannot be started, or no control group with a quota can be created.
    pub(super) fn establish(self) -> Result<EstablishedCondition> {
        let processes = match self {
            Self::OneBusy => 1,
            Self::TwoBusy => 2,
            _ => 0,
        };
        let busy = BusyProcesses::start(processes)?;
        let quota_us = Topology::discover().usable_cores() * PERIOD_US / 2;
        let group = (self == Self::HalfQuota).then(|| create_group(quota_us)).transpose()?;
        Ok(EstablishedCondition { _busy: busy, group })
    }
}

/// The processes and the control group of a condition.
pub(super) struct EstablishedCondition {
    _busy: BusyProcesses,
    pub(super) group: Option<PathBuf>,
}

impl Drop for EstablishedCondition {
    fn drop(&mut self) {
        // A group that cannot be removed is empty and limits nobody.
        let _ = self.group.as_ref().map(fs::remove_dir);
    }
}

/// Moves this process into a control group.
///
/// # Errors
/// If the system refuses.
pub(super) fn enter(group: &Path) -> Result<()> {
    fs::write(group.join(PROCESSES), "0").context("cannot enter the control group")
}

/// Creates a control group with this quota for each [`PERIOD_US`], and returns its folder.
fn create_group(quota_us: usize) -> Result<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let created = parents(&own).into_iter().find_map(|parent| {
        let folder = parent.join(format!("consort-fork-join-{}", process::id()));
        fs::create_dir(&folder).ok()?;
        let version_2 = fs::write(folder.join("cpu.max"), format!("{quota_us} {PERIOD_US}"));
        let set = version_2.or_else(|_| {
            fs::write(folder.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
            fs::write(folder.join("cpu.cfs_quota_us"), quota_us.to_string())
        });
        if set.is_err() {
            // It has no controller of processor time; another parent may have one.
            let _ = fs::remove_dir(&folder);
        }
        set.is_ok().then_some(folder)
    });
    created.context("no control group with a quota can be created: run it as root, or in a scope")
}

/// Returns the folders in which a control group may be created, by the text of `/proc/self/cgroup`:
/// first the group of this process, then those above it.
fn parents(own: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let mount = match controllers {
            "" => Path::new("/sys/fs/cgroup").to_owned(),
            some if some.split(',').any(|one| one == "cpu") => {
                Path::new("/sys/fs/cgroup").join(some)
            }
            _ => continue,
        };
        let path = Path::new(path.trim_start_matches('/'));
        all.extend(path.ancestors().map(|above| mount.join(above)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_are_candidates() {
        let paths = |text: &str| -> Vec<String> {
            parents(text).iter().map(|path| path.display().to_string()).collect()
        };
        let root = "/sys/fs/cgroup";
        let expected = ["/user.slice/a", "/user.slice", "/"].map(|end| format!("{root}{end}"));
        assert_eq!(paths("0::/user.slice/a\n"), expected);
        let text = "5:memory:/x\n3:cpu,cpuacct:/\n1:cpuset:/\n";
        assert_eq!(paths(text), [format!("{root}/cpu,cpuacct/")]);
        assert!(paths("nonsense").is_empty());
    }
}
