//! Where the threads of a PE sleep.
//!
//! The word is `{epoch : 16, sleepers : 16}`.
//!
//! | a waiter | a sender |
//! | --- | --- |
//! | counts itself among the sleepers | stores its message |
//! | fences | fences |
//! | looks for the message once more | looks whether there are sleepers |
//! | sleeps until the epoch has changed | begins the next epoch with no sleepers, wakes all |
//!
//! One of the two sees the other: the store-buffer pattern with a sequentially consistent fence on
//! both sides. So no wake-up is lost. A process that dies in its sleep stays counted until the next
//! wake-up, which then wakes nobody.

use std::{
    sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
    time::Duration,
};

use crate::sync::{
    fence,
    futex::{Futex, Scope},
};

/// The part of the word that counts those who sleep, or are about to.
const SLEEPERS: u32 = 0xffff;
/// The first epoch after 0.
const NEXT_EPOCH: u32 = SLEEPERS + 1;

/// Where the threads of a PE sleep, on lines of its own.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Parker(Futex);

/// The epoch in which a thread said that it is about to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(u32);

impl Epoch {
    fn of(word: u32) -> Self {
        Self(word & !SLEEPERS)
    }
}

impl Parker {
    /// Announces that the calling thread is about to sleep; it must look once more before it does,
    /// and then sleep or cancel.
    pub fn prepare(&self) -> Epoch {
        let word = self.0.word().fetch_add(1, Relaxed);
        // Pairs with the fence in `wake`: either the sender sees the sleeper, or the sleeper's next
        // look sees the message.
        fence(SeqCst);
        Epoch::of(word)
    }

    /// The last look found something, or the time is up: no sleep.
    pub fn cancel(&self, epoch: Epoch) {
        // In another epoch it is not counted any more.
        let less = |word: u32| (Epoch::of(word) == epoch && word & SLEEPERS > 0).then(|| word - 1);
        let _ = self.0.word().fetch_update(Relaxed, Relaxed, less);
    }

    /// Sleeps until woken, or for about `limit` at most.
    pub fn sleep(&self, epoch: Epoch, limit: Duration, scope: Scope) {
        loop {
            // Acquire: pairs with the release in `wake_all`; the message is seen afterwards.
            let word = self.0.word().load(Acquire);
            if Epoch::of(word) != epoch {
                return;
            }
            if self.0.sleep(word, limit, scope) {
                return self.cancel(epoch);
            }
        }
    }

    /// Wakes all threads that sleep here or are about to; for after the store that they wait for.
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
        // Release: pairs with the acquire in `sleep`. One of several senders wakes.
        if self.0.word().fetch_update(AcqRel, Relaxed, next).is_ok() {
            self.0.wake_all(scope);
        }
    }
}
