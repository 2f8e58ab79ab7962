//! Poison: whether a job has failed, and why. The first PE that detects a failure records it.
//!
//! | state | meaning |
//! | --- | --- |
//! | 0 | the job has not failed |
//! | 1 | it has failed; the PE that detected it is writing the reason |
//! | 2 | it has failed, and the reason is complete |
//!
//! A failure is final, so a wait checks only the state. A reader of the reason waits for state 2,
//! but not forever, because a process may die in state 1. The writer does not block in state 1.

use std::{
    sync::atomic::Ordering::{Acquire, Relaxed, Release},
    time::{Duration, Instant},
};

use consort_machine::sync::{AtomicU32, AtomicU64, yield_now};

pub(crate) const REASON_WORDS: usize = 1024;

const NOT_FAILED: u32 = 0;
const CLAIMED: u32 = 1;
const FAILED: u32 = 2;

/// How long a reader waits for the reason before it gives up.
const CLAIM_LIMIT: Duration = Duration::from_secs(1);

/// The failure state of a job.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct PoisonFlag(AtomicU32);

impl PoisonFlag {
    /// Returns whether the job has failed.
    #[inline(always)]
    pub fn is_raised(&self) -> bool {
        self.0.load(Relaxed) != NOT_FAILED
    }
}

/// The failure state of a job, and the reason encoded in words.
#[repr(C)]
#[derive(Debug)]
pub struct Poison<const WORDS: usize = REASON_WORDS> {
    flag: PoisonFlag,
    reason: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Default for Poison<WORDS> {
    fn default() -> Self {
        Self { flag: PoisonFlag::default(), reason: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl<const WORDS: usize> Poison<WORDS> {
    /// Returns the failure state, for waits to check.
    #[inline(always)]
    pub fn flag(&self) -> &PoisonFlag {
        &self.flag
    }

    /// Fails the job for this reason, unless it has already failed. Returns whether this call
    /// failed it. Truncates a reason that is too long.
    pub fn claim(&self, reason: &[u64]) -> bool {
        let state = &self.flag.0;
        if state.compare_exchange(NOT_FAILED, CLAIMED, Relaxed, Relaxed).is_err() {
            return false;
        }
        for (word, &value) in self.reason.iter().zip(reason) {
            word.store(value, Relaxed);
        }
        state.store(FAILED, Release); // pairs with the acquires in `kind` and `reason`
        true
    }

    /// Returns the first word of the reason, if it is complete. Never waits, so a signal handler
    /// may call it.
    pub fn kind(&self) -> Option<u64> {
        // Acquire: pairs with the release in `claim`.
        let is_there = self.flag.0.load(Acquire) == FAILED;
        self.reason.first().filter(|_| is_there).map(|word| word.load(Relaxed))
    }

    /// Fails the job for a one-word reason, unless it has already failed. Only for a forked child.
    /// It is the only user of its copy of the memory: if a thread of the parent was writing a
    /// reason, that thread does not exist in the child.
    pub fn claim_alone(&self, reason: u64) {
        if self.flag.0.load(Relaxed) != FAILED {
            self.reason[0].store(reason, Relaxed);
            self.flag.0.store(FAILED, Relaxed);
        }
    }

    /// Returns why the job has failed. `None` if it has not, or if the reason was never completed.
    pub fn reason(&self) -> Option<[u64; WORDS]> {
        let begun = Instant::now();
        loop {
            // Acquire: pairs with the release in `claim`.
            match self.flag.0.load(Acquire) {
                FAILED => break,
                CLAIMED if begun.elapsed() < CLAIM_LIMIT => yield_now(),
                // A program has overwritten the memory.
                _ => return None,
            }
        }
        Some(std::array::from_fn(|index| self.reason[index].load(Relaxed)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A wild write must not keep the launcher from ending the other PEs.
    #[test]
    fn overwritten_state_has_no_reason() {
        let poison = Poison::<4>::default();
        assert_eq!(poison.reason(), None);
        poison.flag.0.store(7, Relaxed);
        let begun = Instant::now();
        assert_eq!((poison.flag.is_raised(), poison.reason()), (true, None));
        assert!(begun.elapsed() < CLAIM_LIMIT, "it is not waited for");
    }
}
