//! Which processors the jobs of this process use, so that a job takes those that are free.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{affinity::CpuId, topology::Topology};

/// The number of PEs on each processor, over all jobs of this process.
static USED: Mutex<BTreeMap<CpuId, u32>> = Mutex::new(BTreeMap::new());

fn used() -> MutexGuard<'static, BTreeMap<CpuId, u32>> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The processors of a job's PEs, by rank. Until it is dropped, other jobs of this process prefer
/// others.
#[derive(Debug)]
pub struct Cores(Vec<CpuId>);

impl Cores {
    /// A processor for each of `pes` PEs: those with the fewest PEs of other jobs, near ones first;
    /// `None` when the PEs outnumber the usable cores. The first is `first` if it is given.
    #[must_use]
    pub fn take(topology: &Topology, pes: usize, first: Option<CpuId>) -> Option<Self> {
        let mut cpus = topology.placement_order(pes)?;
        let mut used = used();
        cpus.sort_by_key(|cpu| {
            (Some(*cpu) != first, used.get(cpu).copied().unwrap_or(0)) // stable: near ones stay
        });
        cpus.truncate(pes);
        for cpu in &cpus {
            *used.entry(*cpu).or_default() += 1;
        }
        Some(Self(cpus))
    }

    /// The processor of each PE.
    #[must_use]
    pub fn cpus(&self) -> &[CpuId] {
        &self.0
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        let mut used = used();
        for cpu in &self.0 {
            if let Some(pes) = used.get_mut(cpu) {
                *pes -= 1;
            }
        }
        used.retain(|_, pes| *pes > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_takes_the_processors_that_no_other_uses() {
        let topology = Topology::discover();
        let all = topology.usable_cores();
        let mut jobs: Vec<_> = (0..all).filter_map(|_| Cores::take(&topology, 1, None)).collect();
        let mut cpus: Vec<_> = jobs.iter().flat_map(|cores| cores.cpus().to_vec()).collect();
        cpus.sort_unstable();
        cpus.dedup();
        assert_eq!(cpus.len(), all, "each has its own");
        let given_back = jobs.remove(0);
        let free = given_back.cpus().to_vec();
        drop(given_back);
        let next = Cores::take(&topology, 1, None).map(|cores| cores.cpus().to_vec());
        assert_eq!(next, Some(free));
        let chosen = Cores::take(&topology, 1, cpus.last().copied());
        assert_eq!(chosen.map(|cores| cores.cpus().to_vec()), Some(vec![cpus[all - 1]]));
        assert!(Cores::take(&topology, all + 1, None).is_none());
    }
}
