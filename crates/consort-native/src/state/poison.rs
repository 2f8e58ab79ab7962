//! That a job has failed, and why: said once, by the first who finds out.
//!
//! | state | meaning |
//! | --- | --- |
//! | 0 | the job is sound |
//! | 1 | it has failed; whoever said so first is writing the reason |
//! | 2 | it has failed, and the reason is there |
//!
//! A failure is final, so every wait looks at the state alone. Whoever asks for the reason waits
//! for state 2, though not forever: a process may die between 1 and 2. Nobody blocks between them.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::sync::{AtomicU32, AtomicU64, yield_now};

/// Words of a reason.
pub(crate) const REASON_WORDS: usize = 1024;

const SOUND: u32 = 0;
const CLAIMED: u32 = 1;
const FAILED: u32 = 2;

/// Yields until the reason is given up: about a second.
const PATIENCE: u32 = 1 << 20;

/// The state of a job.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct PoisonFlag(AtomicU32);

impl PoisonFlag {
    /// Whether the job has failed.
    #[inline(always)]
    pub fn is_raised(&self) -> bool {
        self.0.load(Relaxed) != SOUND
    }
}

/// The state of a job, and the reason of its failure in words.
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
    /// The state, for those who wait.
    #[inline(always)]
    pub fn flag(&self) -> &PoisonFlag {
        &self.flag
    }

    /// Fails the job for this reason, if it is sound; says whether it was. As many words of the
    /// reason are kept as there is room for.
    pub fn claim(&self, reason: &[u64]) -> bool {
        let state = &self.flag.0;
        if state.compare_exchange(SOUND, CLAIMED, Relaxed, Relaxed).is_err() {
            return false;
        }
        for (word, &value) in self.reason.iter().zip(reason) {
            word.store(value, Relaxed);
        }
        state.store(FAILED, Release); // pairs with the acquire in `reason`
        true
    }

    /// Why the job has failed; `None` if it has not, or whoever said so has not said why.
    pub fn reason(&self) -> Option<[u64; WORDS]> {
        if !self.flag.is_raised() {
            return None;
        }
        // Acquire: pairs with the release in `claim`.
        let is_there = (0..PATIENCE).any(|_| {
            let is_there = self.flag.0.load(Acquire) == FAILED;
            if !is_there {
                yield_now();
            }
            is_there
        });
        is_there.then(|| std::array::from_fn(|index| self.reason[index].load(Relaxed)))
    }
}
