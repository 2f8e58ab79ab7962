//! Keeps the PEs of a job on different processors, if there are enough of them.
//!
//! On a busy machine the system may move two PEs to one processor, and leaves them there, because all
//! processors are equally busy. The PEs then take turns, and a barrier takes two context switches
//! instead of two transfers of a cache line. So a PE whose wait let another thread run looks whether
//! a PE of lower rank waited on the same processor, and leaves it.

use std::{
    cell::Cell,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use consort_fabric::Rank;
use consort_machine::affinity::{self, CpuId, Pinned};

use crate::launch::job::Job;

/// The shortest time between two moves of a PE. A move takes some 20 us.
const BETWEEN_MOVES: Duration = Duration::from_millis(2);

impl Job {
    /// Publishes on which processor the PE of this rank, which the calling thread runs, has waited.
    /// If a PE of lower rank waited there, moves the thread to a processor on which no PE waited,
    /// unless the program leaves the placement to the system. Returns whether it has moved. `moved` is
    /// when it last did.
    ///
    /// The system may move the thread again later, to any processor that was allowed before.
    #[cold]
    pub fn leave_shared_processor(&self, rank: Rank, moved: &Cell<Option<Instant>>) -> bool {
        let config = self.config();
        let here = || affinity::current();
        config.places
            && config.fits()
            && here().is_some_and(|here| self.leave_shared(rank, here, moved))
    }

    /// As [`Job::leave_shared_processor`], for a thread that runs `here`.
    fn leave_shared(&self, rank: Rank, here: CpuId, moved: &Cell<Option<Instant>>) -> bool {
        let own = &self.states[rank.index()].processor;
        // Relaxed: an old value leads to a needless move or to none, and the next wait looks again.
        own.store(here.0 + 1, Relaxed);
        let waits_on =
            |rank: usize, cpu: CpuId| self.states[rank].processor.load(Relaxed) == cpu.0 + 1;
        let is_shared = (0..rank.index()).any(|lower| waits_on(lower, here));
        if !is_shared || moved.get().is_some_and(|moved| moved.elapsed() < BETWEEN_MOVES) {
            return false;
        }
        moved.set(Some(Instant::now()));
        let is_free = |cpu| !(0..self.states.len()).any(|rank| waits_on(rank, cpu));
        let free = affinity::find_allowed(is_free);
        // Dropping it lets the thread run on all its processors again.
        let free = free.filter(|&free| Pinned::new(free).is_ok());
        if let Some(cpu) = free {
            own.store(cpu.0 + 1, Relaxed);
        }
        free.is_some()
    }
}

#[cfg(all(test, target_os = "linux", not(any(miri, consort_portable))))]
mod tests {
    use super::*;
    use crate::launch::config::Config;

    #[test]
    fn higher_rank_leaves_a_shared_processor() {
        let &[first, second, ..] = &affinity::allowed()[..] else { return };
        for (cpus, moves) in [([first; 2], true), ([second; 2], true), ([first, second], false)] {
            let job = Job::new(Config::of_two()).expect("some memory");
            let (moved, before) = (Cell::new(None), affinity::allowed());
            assert!(!job.leave_shared(Rank(0), cpus[0], &moved), "no PE has a lower rank");
            assert_eq!(job.leave_shared(Rank(1), cpus[1], &moved), moves);
            assert_eq!(affinity::allowed(), before);
            moved.set(Some(Instant::now() + Duration::from_secs(60)));
            assert!(!job.leave_shared(Rank(1), cpus[0], &moved), "it has just moved");
        }
    }

    #[test]
    fn a_pinned_thread_stays() {
        let first = affinity::allowed()[0];
        let _pinned = Pinned::new(first).expect("an allowed processor");
        let job = Job::new(Config::of_two()).expect("some memory");
        let moves = |rank| job.leave_shared_processor(Rank(rank), &Cell::new(None));
        assert_eq!([0, 1].map(moves), [false, false]);
    }

    #[test]
    fn the_system_may_place_the_threads() {
        let job = Job::new(Config { places: false, ..Config::of_two() }).expect("some memory");
        let here = affinity::current().expect("Linux reports it");
        job.states[0].processor.store(here.0 + 1, Relaxed);
        assert!(!job.leave_shared_processor(Rank(1), &Cell::new(None)));
        assert_eq!(job.states[1].processor.load(Relaxed), 0);
    }
}
