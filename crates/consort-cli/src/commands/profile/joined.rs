//! The profiles of jobs, each joined from the profiles of its PEs.
//!
//! A program may create many jobs, one after the other. Jobs with the same name, kind and number of
//! PEs are added up.

use std::{cmp::Reverse, collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result, anyhow};
use consort_fabric::files;
use consort_tuner::{CallProfile, PeProfile};

/// The profile of a job, or of several alike.
pub(super) struct JobProfile {
    /// The number of jobs.
    pub(super) jobs: usize,
    /// The profiles of the PEs, by rank.
    pub(super) pes: Vec<PeProfile>,
    /// The calls, those with the most time first.
    pub(super) calls: Vec<JoinedCall>,
}

/// The calls of one kind from one place.
pub(super) struct JoinedCall {
    /// Those of all PEs.
    pub(super) all: CallProfile,
    /// The largest number of calls of a PE.
    pub(super) count: u64,
    /// The time and the time waiting of each PE that made them, by rank, in nanoseconds.
    pub(super) times: Vec<(u32, u64, u64)>,
}

/// Reads the profiles of all PEs in a folder. Jobs are in the order in which the first of their
/// kind began.
///
/// # Errors
/// When a file cannot be read, or is not a profile.
pub(super) fn read(folder: &Path) -> Result<Vec<JobProfile>> {
    let unreadable = || format!("cannot read the profile in {}", folder.display());
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue; // a process was killed while it wrote
        }
        let part = PeProfile::parse(&files::read(&path).with_context(unreadable)?);
        let part = part.map_err(|why| anyhow!("{}: {why}", path.display()));
        parts.push(part.context("the program uses another version of Consort than this command")?);
    }
    parts.sort_by_key(|part| (part.begun_ns, part.rank));
    let mut jobs: Vec<(JobProfile, BTreeSet<String>)> = Vec::new();
    for part in parts {
        let is_alike = |(job, _): &&mut (JobProfile, BTreeSet<String>)| {
            let first = &job.pes[0];
            (&first.name, &first.fabric, first.pes) == (&part.name, &part.fabric, part.pes)
        };
        let id = part.job.clone();
        match jobs.iter_mut().find(is_alike) {
            Some((job, ids)) => {
                ids.insert(id);
                job.add(part);
            }
            None => {
                let job = JobProfile { jobs: 1, pes: vec![part], calls: Vec::new() };
                jobs.push((job, BTreeSet::from([id])));
            }
        }
    }
    Ok(jobs.into_iter().map(|(job, ids)| job.joined(ids.len())).collect())
}

/// Returns whether calls have the same name, place and algorithm.
fn are_alike(one: &CallProfile, other: &CallProfile) -> bool {
    (&one.name, &one.site, &one.algorithm, one.origin)
        == (&other.name, &other.site, &other.algorithm, other.origin)
}

/// Adds the calls of another profile to those with the same name, place and algorithm.
fn add_calls(calls: &mut Vec<CallProfile>, others: Vec<CallProfile>) {
    for other in others {
        match calls.iter_mut().find(|known| are_alike(known, &other)) {
            None => calls.push(other),
            Some(known) => {
                known.count += other.count;
                known.ns += other.ns;
                known.waiting_ns += other.waiting_ns;
                known.longest_ns = known.longest_ns.max(other.longest_ns);
            }
        }
    }
}

impl JobProfile {
    /// Adds the profile of a PE of an alike job.
    fn add(&mut self, part: PeProfile) {
        let Some(pe) = self.pes.iter_mut().find(|pe| pe.rank == part.rank) else {
            return self.pes.push(part);
        };
        pe.until_ns += total_ns(&part);
        pe.has_ended &= part.has_ended;
        pe.paused += part.paused;
        pe.polls += part.polls;
        pe.yields += part.yields;
        pe.sleeps += part.sleeps;
        pe.yielding_ns += part.yielding_ns;
        pe.sleeping_ns += part.sleeping_ns;
        pe.waiting_elsewhere_ns += part.waiting_elsewhere_ns;
        add_calls(&mut pe.calls, part.calls);
    }

    /// Joins the calls of the PEs of `jobs` jobs.
    fn joined(mut self, jobs: usize) -> Self {
        self.jobs = jobs;
        self.pes.sort_by_key(|pe| pe.rank);
        let mut all = Vec::new();
        self.pes.iter().for_each(|pe| add_calls(&mut all, pe.calls.clone()));
        let calls = all.into_iter().map(|all| {
            let mut times = Vec::new();
            let mut count = 0;
            for pe in &self.pes {
                if let Some(call) = pe.calls.iter().find(|call| are_alike(call, &all)) {
                    times.push((pe.rank, call.ns, call.waiting_ns));
                    count = count.max(call.count);
                }
            }
            JoinedCall { all, times, count }
        });
        self.calls = calls.collect();
        self.calls.sort_by_key(|call| Reverse((call.all.is_blocking, call.all.ns)));
        self
    }

    /// Returns the mean of a time of the PEs, in nanoseconds.
    pub(super) fn mean_ns(&self, time: impl Fn(&PeProfile) -> u64) -> f64 {
        self.pes.iter().map(|pe| time(pe) as f64).sum::<f64>() / self.pes.len().max(1) as f64
    }

    /// Returns the ranks that are missing, or whose process ended before the job did.
    pub(super) fn incomplete(&self) -> Vec<u32> {
        let pes = self.pes.first().map_or(0, |pe| pe.pes);
        let has_ended = |rank| self.pes.iter().any(|pe| pe.rank == rank && pe.has_ended);
        (0..pes).filter(|&rank| !has_ended(rank)).collect()
    }
}

/// Returns how long a PE ran.
pub(super) fn total_ns(pe: &PeProfile) -> u64 {
    pe.until_ns.saturating_sub(pe.begun_ns).max(1)
}

/// Returns the time of a PE in blocking calls.
pub(super) fn in_calls_ns(pe: &PeProfile) -> u64 {
    pe.calls.iter().filter(|call| call.is_blocking).map(|call| call.ns).sum()
}

/// Returns the time for which the blocking calls of a PE could not go on.
pub(super) fn waiting_ns(pe: &PeProfile) -> u64 {
    pe.calls.iter().map(|call| call.waiting_ns).sum()
}

/// Returns the time of a PE outside of calls and waits.
pub(super) fn computing_ns(pe: &PeProfile) -> u64 {
    total_ns(pe).saturating_sub(in_calls_ns(pe) + pe.waiting_elsewhere_ns)
}

impl JoinedCall {
    /// Returns the PEs that waited for the shortest and for the longest time.
    pub(super) fn least_and_most(&self) -> Option<[(u32, u64); 2]> {
        let of = |&(rank, _, waiting_ns): &(u32, u64, u64)| (rank, waiting_ns);
        let least = self.times.iter().min_by_key(|time| time.2).map(of)?;
        let most = self.times.iter().max_by_key(|time| time.2).map(of)?;
        Some([least, most])
    }
}
