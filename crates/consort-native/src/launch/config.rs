//! The configuration of a launch.

use std::time::Duration;

use consort_fabric::{Nodes, Rank};

use crate::segment::origin::Origin;
use consort_machine::wait::policy::Waiting;

/// The shortest and the longest time between two checks by a waiting PE. Finding a deadlock takes
/// up to eight checks, and should take less than three seconds.
const CHECK_INTERVAL: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(300)];
/// The interval for each peer, between these limits. A check takes about 90 ns for each peer.
const PER_PEER: Duration = Duration::from_nanos(500);

/// The configuration of a launch.
#[derive(Clone, Debug, Hash)]
pub struct Config {
    /// The number of PEs in the job.
    pub pes: u32,
    /// The waiting policy of all PEs.
    pub waiting: Waiting,
    /// The number of PEs on this machine.
    pub here: u32,
    /// The placement of the PEs on nodes that share no memory.
    pub nodes: Nodes,
    /// The number of processors of this machine that the PEs may use. With a quota, PEs on separate
    /// processors run at the same time until the quota is used up.
    pub processors: u32,
    /// The number of cores of which the PEs may use the time: fewer than the processors if a quota
    /// grants less.
    pub cores: u32,
    /// The size of the symmetric memory of each PE in bytes.
    pub heap_bytes: usize,
    /// The alignment of each PE's symmetric memory: a power of two, at least a page. In a process
    /// that has only one PE, it may be more than a large page. It then applies to the memory of
    /// that PE in this process, if enough address space is free.
    pub heap_align: usize,
    /// The number of bytes behind each PE's heap that peers access like the heap, for static
    /// variables of the PE's program. Nothing is allocated there.
    pub statics_bytes: usize,
    /// The origin of the memory that the PEs share.
    pub memory: Origin,
    /// The sequence number of the first step, at least 1. Tests of wrap-around begin with a number
    /// close to the maximum.
    pub first_step: u64,
    /// Whether each PE has a helper thread, which may drive its nonblocking calls.
    pub helpers: bool,
    /// How long PEs wait for a PE that no thread runs, if threads join the job. Forever if there is
    /// no limit.
    pub joining: Option<Duration>,
    /// Whether errors contain the file and line of a call.
    pub names_places: bool,
    /// Whether a PE leaves a processor on which another PE waits.
    pub places: bool,
    /// The job's name, for messages and threads; empty if it has none.
    pub name: String,
}

#[cfg(test)]
impl Config {
    /// Returns the configuration of a job of two threads with small heaps.
    pub(crate) fn of_two() -> Self {
        Self {
            pes: 2,
            waiting: Waiting::SpinYield,
            here: 2,
            nodes: Nodes::One,
            processors: 2,
            cores: 2,
            heap_bytes: 4096,
            heap_align: 0,
            statics_bytes: 0,
            memory: Origin::Private,
            first_step: 1,
            helpers: false,
            joining: None,
            names_places: true,
            places: true,
            name: String::new(),
        }
    }
}

impl Config {
    /// Returns whether each PE can have a separate processor.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.here <= self.processors
    }

    /// Returns the time between two checks by a waiting PE. A check finds out whether the PE's
    /// peers make the same call, are present, and do not all wait for each other. Each PE checks
    /// all peers, so if many PEs share few cores, a check takes longer and is done less often. With
    /// up to about 1000 PEs on two cores, checks take less than a quarter of the processor time.
    pub(crate) fn check_interval(&self) -> Duration {
        let [shortest, longest] = CHECK_INTERVAL;
        let checks = self.pes.saturating_mul(self.here.div_ceil(self.cores.max(1)));
        PER_PEER.saturating_mul(checks).clamp(shortest, longest)
    }

    /// Returns how many PEs share memory on the largest node, which is the first.
    pub(crate) fn most_near(&self) -> u32 {
        self.nodes.members(0, self.pes).count
    }

    /// Returns the name of the thread of a PE.
    #[must_use]
    pub fn thread_name(&self, pe: Rank) -> String {
        if self.name.is_empty() { format!("PE {pe}") } else { format!("{} {pe}", self.name) }
    }

    /// Returns whether senders fence for each message, instead of threads that are about to sleep.
    /// Senders fence if PEs sleep often. They also fence if there are far PEs, because a sender
    /// then has work to do after each message anyway.
    pub(crate) fn senders_fence(&self) -> bool {
        let sleep_often = self.waiting == Waiting::SpinYieldPark && !self.fits();
        sleep_often || self.nodes != Nodes::One
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval_of(pes: u32, cores: u32) -> Duration {
        let processors = 64; // with a quota if that is more than the cores
        Config { pes, here: pes, processors, cores, ..Config::of_two() }.check_interval()
    }

    #[test]
    fn many_pes_on_few_cores_check_less_often() {
        let [shortest, longest] = CHECK_INTERVAL;
        assert_eq!(interval_of(2, 2), shortest);
        assert_eq!(interval_of(100, 2), shortest);
        assert_eq!(interval_of(1000, 2), Duration::from_millis(250));
        assert_eq!(interval_of(1000, 1000), shortest);
        assert_eq!(interval_of(u32::MAX, 1), longest);
    }
}
