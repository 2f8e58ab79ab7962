//! Tracks which processors the jobs of this process use, so that a new job takes free ones.

use super::{affinity::CpuId, fork_safe::Mutex, topology::Topology};

/// The number of PEs on each processor, by its number, summed over all jobs of this process.
/// Processors after the last one are not used.
static USED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Returns the number of PEs on a processor, to be changed.
fn pes_on(used: &mut Vec<u32>, CpuId(cpu): CpuId) -> &mut u32 {
    let index = cpu as usize;
    if used.len() <= index {
        used.resize(index + 1, 0);
    }
    &mut used[index]
}

/// Chooses a processor for each of `pes` PEs. `used` is the number of other jobs' PEs on each.
pub(super) fn choose(
    topology: &Topology,
    pes: usize,
    first: Option<CpuId>,
    used: &[u32],
) -> Option<Vec<CpuId>> {
    let order = topology.placement_order(pes, first)?;
    let mut free: Vec<_> = order.into_iter().map(|cpu| (cpu, topology.siblings(cpu))).collect();
    let mut busy = used.to_vec();
    let mut chosen = Vec::with_capacity(pes);
    for _ in 0..pes {
        let known = |cpu: &CpuId| busy.get(cpu.0 as usize).copied().unwrap_or(0);
        let least = (0..free.len()).min_by_key(|&index| {
            let (cpu, siblings) = free[index];
            let is_later = chosen.is_empty() && Some(cpu) != first;
            // Of equally busy processors the first one wins, so that near processors stay together.
            (is_later, siblings.iter().map(known).sum::<u32>(), known(&cpu))
        });
        let (cpu, _) = free.remove(least?);
        *pes_on(&mut busy, cpu) += 1;
        chosen.push(cpu);
    }
    Some(chosen)
}

/// The processors of a job's PEs, by rank. Until this value is dropped, other jobs of this process
/// prefer other processors.
#[derive(Debug)]
pub struct Cores(Vec<CpuId>);

impl Cores {
    /// Takes a processor for each of `pes` PEs, the first one `first` if given: on the cores with
    /// the fewest PEs of other jobs, near ones first. `None` if the PEs outnumber the allowed
    /// processors.
    #[must_use]
    pub fn take(topology: &Topology, pes: usize, first: Option<CpuId>) -> Option<Self> {
        let mut used = USED.lock();
        let cpus = choose(topology, pes, first, &used)?;
        for cpu in &cpus {
            *pes_on(&mut used, *cpu) += 1;
        }
        Some(Self(cpus))
    }

    /// Returns the processor of each PE.
    #[must_use]
    pub fn cpus(&self) -> &[CpuId] {
        &self.0
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        let mut used = USED.lock();
        for cpu in &self.0 {
            *pes_on(&mut used, *cpu) -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_takes_processors_no_other_job_uses() {
        let topology = Topology::discover();
        let all = topology.processors();
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
