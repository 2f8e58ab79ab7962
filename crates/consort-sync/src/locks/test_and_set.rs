//! The test-and-set lock with exponential backoff: Anderson 1990, section 3.
//!
//! One word: 1 while the lock is held. A thread that finds the lock held waits until the word is 0
//! and tries again. After each failure it pauses twice as long, so that fewer threads try at once.

#![expect(unsafe_code, reason = "relies on a lock for exclusive access")]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_machine::{Machine, Until, Word};

use super::RawLock;

/// The first and the longest rest, in cycles.
const RESTS: [u64; 2] = [64, 4096];

/// A test-and-set lock: one word, no order, no protection from starvation.
#[derive(Debug, Default)]
pub struct TestAndSet {
    held: Word,
}

impl TestAndSet {
    /// Creates a free lock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { held: Word::new(0) }
    }
}

// SAFETY: the thread that changes the word from 0 to 1 holds the lock, and only that thread changes
// it back. The acquire of that exchange pairs with the release of the store.
unsafe impl RawLock for TestAndSet {
    const NAME: &'static str = "test-and-set";
    #[cfg(not(loom))]
    const NEW: Self = Self::new();

    type Token = ();
    type WaitState = ();

    #[inline(always)]
    async fn enter<M: Machine>(&self, m: &M) -> Result<(), ()> {
        if m.swap(&self.held, 1, Acquire).await == 0 { Ok(()) } else { Err(()) }
    }

    async fn wait<M: Machine>(&self, m: &M, (): ()) -> Result<(), M::Stop> {
        let [mut rest, longest] = RESTS;
        loop {
            m.pause(rest).await;
            rest = (2 * rest).min(longest);
            m.wait_until(&self.held, Until::Equals(0)).await?;
            if self.enter(m).await.is_ok() {
                return Ok(());
            }
        }
    }

    #[inline(always)]
    async fn try_acquire<M: Machine>(&self, m: &M) -> Option<()> {
        m.compare_exchange(&self.held, 0, 1, Acquire).await.ok().map(|_| ())
    }

    async fn is_held<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.held, Relaxed).await != 0
    }

    #[inline(always)]
    async unsafe fn leave<M: Machine>(&self, m: &M, (): ()) -> Result<(), ()> {
        m.store(&self.held, 0, Release).await; // pairs with the acquire of the next holder
        m.wake(&self.held);
        Ok(())
    }

    async unsafe fn pass_on<M: Machine>(&self, _: &M, (): ()) -> Result<(), M::Stop> {
        Ok(())
    }
}
