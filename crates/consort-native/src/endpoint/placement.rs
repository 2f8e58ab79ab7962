//! Keeps the PEs of a job on different processors, if there are enough of them.
//!
//! If a PE's wait let another thread run, the PE checks whether a PE of lower rank waited on the
//! same processor. If so, it leaves the processor, provided that this pays off ([`Moves`]).

use std::{cell::Cell, sync::atomic::Ordering::Relaxed};

use consort_fabric::Rank;
use consort_machine::{
    affinity::{self, CpuId},
    wait::moves::Moves,
};

use crate::launch::job::Job;

impl Job {
    /// Publishes on which processor the PE of this rank, which the calling thread runs, has waited.
    /// If a PE of lower rank waited there, moves the thread to a processor on which no PE waited,
    /// unless the program leaves the placement to the system. Returns whether it has moved. `calls`
    /// is the number of the PE's calls so far, and `moves` are its moves.
    #[cold]
    pub fn leave_shared_processor(&self, rank: Rank, calls: u64, moves: &Cell<Moves>) -> bool {
        let config = self.config();
        let here = || affinity::current();
        config.places
            && config.fits()
            && here().is_some_and(|here| self.leave_shared(rank, here, calls, moves))
    }

    /// As [`Job::leave_shared_processor`], for a thread that runs `here`.
    fn leave_shared(&self, rank: Rank, here: CpuId, calls: u64, moves: &Cell<Moves>) -> bool {
        let own = &self.states[rank.index()].processor;
        // Relaxed: an old value leads to a needless move or to none, and the next wait looks again.
        own.store(here.0 + 1, Relaxed);
        let waits_on =
            |rank: usize, cpu: CpuId| self.states[rank].processor.load(Relaxed) == cpu.0 + 1;
        let is_shared = (0..rank.index()).any(|lower| waits_on(lower, here));
        if !is_shared {
            return false;
        }
        let is_free = |cpu| !(0..self.states.len()).any(|rank| waits_on(rank, cpu));
        let mut updated = moves.get();
        let free = updated.leave(calls, is_free);
        moves.set(updated);
        if let Some(cpu) = free {
            own.store(cpu.0 + 1, Relaxed);
        }
        free.is_some()
    }
}

#[cfg(all(test, target_os = "linux", not(any(miri, consort_portable))))]
mod tests {
    use consort_machine::affinity::Pinned;

    use super::*;
    use crate::launch::config::Config;

    #[test]
    fn higher_rank_leaves_a_shared_processor() {
        let &[first, second, ..] = &affinity::allowed()[..] else { return };
        for (cpus, moves) in [([first; 2], true), ([second; 2], true), ([first, second], false)] {
            let job = Job::new(Config::of_two()).expect("some memory");
            let (moves_of, before) = (Cell::default(), affinity::allowed());
            assert!(!job.leave_shared(Rank(0), cpus[0], 0, &moves_of), "no PE has a lower rank");
            assert_eq!(job.leave_shared(Rank(1), cpus[1], 0, &moves_of), moves);
            assert_eq!(affinity::allowed(), before);
            let again = job.leave_shared(Rank(1), cpus[0], 0, &moves_of);
            assert!(!(moves && again), "it has just moved");
        }
    }

    #[test]
    fn a_pinned_thread_stays() {
        let first = affinity::allowed()[0];
        let _pinned = Pinned::new(first).expect("an allowed processor");
        let job = Job::new(Config::of_two()).expect("some memory");
        let moves = |rank| job.leave_shared_processor(Rank(rank), 0, &Cell::default());
        assert_eq!([0, 1].map(moves), [false, false]);
    }

    #[test]
    fn the_system_may_place_the_threads() {
        let job = Job::new(Config { places: false, ..Config::of_two() }).expect("some memory");
        let here = affinity::current().expect("Linux reports it");
        job.states[0].processor.store(here.0 + 1, Relaxed);
        assert!(!job.leave_shared_processor(Rank(1), 0, &Cell::default()));
        assert_eq!(job.states[1].processor.load(Relaxed), 0);
    }
}
