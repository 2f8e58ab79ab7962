//! A parker: a word at which threads sleep.
//!
//! The word is `{epoch : 16, sleepers : 16}`.
//!
//! | waiter | sender |
//! | --- | --- |
//! | counts itself among the sleepers | stores its message |
//! | fences | fences |
//! | checks for the message once more | checks for sleepers |
//! | sleeps until the epoch has changed | begins the next epoch with no sleepers, wakes all |
//!
//! At least one of the two sees the other's store: the store-buffer pattern with a sequentially
//! consistent fence on both sides. So no wake-up is lost. A process that dies while it sleeps stays
//! counted until the next wake-up, which then has nothing to wake.

use std::{
    sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
    time::{Duration, Instant},
};

use crate::sync::{
    fence,
    futex::{Futex, Scope},
};

/// The bits of the word that count the threads that sleep or are about to.
const SLEEPERS: u32 = 0xffff;
/// The first epoch after 0.
const NEXT_EPOCH: u32 = SLEEPERS + 1;

/// The word at which the threads of a PE sleep. It has its own cache lines.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Parker(Futex);

/// The epoch in which a thread announced its sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(u32);

impl Epoch {
    fn of(word: u32) -> Self {
        Self(word & !SLEEPERS)
    }
}

impl Parker {
    /// Creates a parker at which no thread sleeps.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(Futex::new())
    }

    /// Announces that the calling thread is about to sleep. The thread must then check once more
    /// for its message, sleep if there is none, and call `cancel` in either case.
    pub fn prepare(&self) -> Epoch {
        let epoch = self.count();
        // Pairs with the fence in `wake`: either the sender sees the sleeper, or the sleeper's next
        // check sees the message.
        fence(SeqCst);
        epoch
    }

    /// Like [`Self::prepare`], for a caller that issues the fence itself.
    pub(super) fn count(&self) -> Epoch {
        Epoch::of(self.0.word().fetch_add(1, Relaxed))
    }

    /// Withdraws an announcement, because the last check found a message or the sleep is over. Call
    /// it once for each announcement.
    pub fn cancel(&self, epoch: Epoch) {
        // In a later epoch the thread is no longer counted.
        let less = |word: u32| (Epoch::of(word) == epoch && word & SLEEPERS > 0).then(|| word - 1);
        let _ = self.0.word().fetch_update(Relaxed, Relaxed, less);
    }

    /// Sleeps until woken, for at most about `limit`.
    pub fn sleep(&self, epoch: Epoch, limit: Duration, scope: Scope) {
        let begun = Instant::now();
        loop {
            // Acquire: pairs with the release in `wake_all`, so that the thread sees the message.
            let word = self.0.word().load(Acquire);
            if Epoch::of(word) != epoch {
                return;
            }
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() || self.0.sleep(word, left, scope) {
                return;
            }
        }
    }

    /// Wakes all threads that sleep here or are about to. Call it after the store that they wait
    /// for.
    #[inline(always)]
    pub fn wake(&self, scope: Scope) {
        fence(SeqCst); // pairs with the fence in `prepare`
        if self.0.word().load(Relaxed) & SLEEPERS != 0 {
            self.wake_all(scope);
        }
    }

    #[cold]
    fn wake_all(&self, scope: Scope) {
        let next =
            |word: u32| (word & SLEEPERS != 0).then(|| (word & !SLEEPERS).wrapping_add(NEXT_EPOCH));
        // Release: pairs with the acquire in `sleep`. Only one of several senders wakes.
        if self.0.word().fetch_update(AcqRel, Relaxed, next).is_ok() {
            self.0.wake_all(scope);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn timed_out_sleeper_leaves_others_counted() {
        let parker = Parker::default();
        let (first, second) = (parker.prepare(), parker.prepare());
        parker.sleep(first, Duration::from_millis(1), Scope::Process);
        parker.cancel(first);
        assert_eq!(parker.0.word().load(Relaxed) & SLEEPERS, 1);
        parker.cancel(second);
        assert_eq!(parker.0.word().load(Relaxed) & SLEEPERS, 0);
    }
}
