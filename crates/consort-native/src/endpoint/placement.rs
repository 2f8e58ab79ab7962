//! Keeps the PEs of a job on different processors, if there are enough of them.
//!
//! On a busy machine the system may move two PEs to one processor, and leaves them there, because all
//! processors are equally busy. The PEs then take turns, and a barrier takes two context switches
//! instead of two transfers of a cache line. So a PE whose wait let another thread run looks whether
//! a PE of lower rank waited on the same processor, and leaves it.

use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use consort_machine::affinity::{self, CpuId, Pinned};

use super::identity::Endpoint;

/// The shortest time between two moves of a PE. A move takes some 20 us.
const BETWEEN_MOVES: Duration = Duration::from_millis(2);

impl Endpoint {
    /// Publishes on which processor this PE waits. If a PE of lower rank waited there, moves the
    /// calling thread to a processor on which no PE waited, unless the program leaves the placement to
    /// the system. Returns whether it has moved.
    ///
    /// The system may move the thread again later, to any processor that was allowed before.
    #[cold]
    pub(super) fn leave_shared_processor(&self) -> bool {
        let config = self.job.config();
        config.places
            && config.fits()
            && affinity::current().is_some_and(|here| self.leave_shared(here))
    }

    /// As [`Endpoint::leave_shared_processor`], for a thread that runs `here`.
    fn leave_shared(&self, here: CpuId) -> bool {
        let Self { job, pe, .. } = self;
        let own = &job.states[pe.rank.index()].processor;
        // Relaxed: an old value leads to a needless move or to none, and the next wait looks again.
        own.store(here.0 + 1, Relaxed);
        let waits_on =
            |rank: usize, cpu: CpuId| job.states[rank].processor.load(Relaxed) == cpu.0 + 1;
        let is_shared = (0..pe.rank.index()).any(|rank| waits_on(rank, here));
        if !is_shared || pe.moved.get().is_some_and(|moved| moved.elapsed() < BETWEEN_MOVES) {
            return false;
        }
        pe.moved.set(Some(Instant::now()));
        let is_free = |&cpu: &CpuId| !(0..job.states.len()).any(|rank| waits_on(rank, cpu));
        let free = affinity::allowed().into_iter().find(is_free);
        // Dropping it lets the thread run on all its processors again.
        let moved = free.filter(|&free| Pinned::new(free).is_ok());
        if let Some(cpu) = moved {
            own.store(cpu.0 + 1, Relaxed);
        }
        moved.is_some()
    }
}

#[cfg(all(test, target_os = "linux", not(any(miri, consort_portable))))]
mod tests {
    use std::sync::Arc;

    use consort_fabric::Rank;

    use super::*;
    use crate::launch::{config::Config, job::Job};

    #[test]
    fn higher_rank_leaves_a_shared_processor() {
        let &[first, second, ..] = &affinity::allowed()[..] else { return };
        for (cpus, moves) in [([first; 2], true), ([second; 2], true), ([first, second], false)] {
            let job = Job::new(Config::of_two()).expect("some memory");
            let ends = [0, 1].map(|rank| Endpoint::new(Arc::clone(&job), Rank(rank)));
            let [low, high] = ends.map(|end| end.expect("memory"));
            assert!(!low.leave_shared(cpus[0]), "no PE of lower rank waits there");
            let before = affinity::allowed();
            assert_eq!(high.leave_shared(cpus[1]), moves);
            assert_eq!(affinity::allowed(), before);
            high.pe.moved.set(Some(Instant::now() + Duration::from_secs(60)));
            assert!(!high.leave_shared(cpus[0]), "it has just moved");
        }
    }

    #[test]
    fn a_pinned_thread_stays() {
        let first = affinity::allowed()[0];
        let _pinned = Pinned::new(first).expect("an allowed processor");
        let job = Job::new(Config::of_two()).expect("some memory");
        let ends = [0, 1].map(|rank| Endpoint::new(Arc::clone(&job), Rank(rank)));
        let moved = ends.map(|end| end.expect("memory").leave_shared_processor());
        assert_eq!(moved, [false, false]);
    }

    #[test]
    fn the_system_may_place_the_threads() {
        let job = Job::new(Config { places: false, ..Config::of_two() }).expect("some memory");
        let end = Endpoint::new(Arc::clone(&job), Rank(1)).expect("memory");
        let here = affinity::current().expect("Linux reports it");
        job.states[0].processor.store(here.0 + 1, Relaxed);
        assert!(!end.leave_shared_processor());
        assert_eq!(job.states[1].processor.load(Relaxed), 0);
    }
}
