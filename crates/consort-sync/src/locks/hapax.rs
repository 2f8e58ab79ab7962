//! The Hapax lock with visible waiters: Dice and Kogan 2025, "Hapax Locks: Value-Based Mutual
//! Exclusion".
//!
//! A *hapax* is a number that occurs only once. Each acquisition takes a new one. The lock has two
//! words: the hapax that arrived last, and one that departed. A thread exchanges its hapax for that
//! of its predecessor, and holds the lock once the predecessor has departed.
//!
//! In the simplest variant of the paper, all threads wait for the second word. Here a thread
//! registers the hapax of its predecessor in a word of an array that all locks share. The
//! predecessor clears that word, and leaves the lock's words alone. If the array's word is in use,
//! the thread waits for the second word of the lock.
//!
//! Threads exchange values and no addresses. So the lock needs no nodes, no thread refers to the
//! memory of another one, and a thread no longer uses the lock once another one may hold it. A
//! fork copies the words of waiting threads that the child does not have. They stay in use there,
//! which costs time only.
//!
//! A thread that had to wait exchanges the array's word at once when it releases the lock, because
//! another thread probably waits, too. Any other thread reads the word first. That costs one more
//! transfer if a thread waits, and one atomic operation less if none does.
//!
//! Cost without contention: an exchange, a store, and an addition of 0, which orders the store.

#![expect(unsafe_code, reason = "relies on a lock for exclusive access")]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_machine::{Machine, Until, Word};

use super::RawLock;

/// The value of a shared word at which no thread waits.
const NOBODY: u64 = 0;

/// A Hapax lock: first come, first served. Each thread waits at a word that few others share.
#[derive(Debug, Default)]
pub struct Hapax {
    /// The hapax that arrived last.
    arrived: Word,
    /// The hapax of the last thread that departed without handing the lock over.
    departed: Word,
}

impl Hapax {
    /// Creates a free lock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { arrived: Word::new(0), departed: Word::new(0) }
    }

    /// Returns the word at which a thread waits for this hapax to depart.
    #[inline(always)]
    fn shared<'m, M: Machine>(&self, m: &'m M, hapax: u64) -> &'m Word {
        m.waiting_word(&self.arrived, hapax)
    }

    /// Departs without handing the lock over.
    #[inline(always)]
    async fn depart<M: Machine>(&self, m: &M, mine: u64) {
        let shared = self.shared(m, mine);
        // Pairs with the acquire of the next holder. From here on the lock may no longer
        // exist, so only addresses are used.
        m.store(&self.departed, mine, Release).await;
        m.wake(&self.departed);
        // A thread may have registered meanwhile. Either this addition sees it, or the acquire of
        // its registration pairs with this release.
        if m.fetch_add(shared, 0, Release).await == mine {
            clear(m, shared, mine).await;
            m.wake(shared);
        }
    }
}

/// Clears a word if a thread waits there for this hapax. All changes of such a word read and
/// write it in one operation, so that a thread that registers there sees what was released before.
async fn clear<M: Machine>(m: &M, shared: &Word, hapax: u64) {
    let _ = m.compare_exchange(shared, hapax, NOBODY, Relaxed).await;
}

// SAFETY: hapaxes have one order, that of the exchanges of `arrived`, and none recurs. A thread
// holds the lock if the hapax before its own has departed. Only the holder departs, once, and the
// release of either way pairs with the acquire of the next thread.
unsafe impl RawLock for Hapax {
    const NAME: &'static str = "Hapax";
    #[cfg(not(loom))]
    const NEW: Self = Self::new();

    /// The holder's hapax, and whether it had to wait. Then another thread probably waits, too.
    type Token = (u64, bool);
    /// The thread's hapax, and that of its predecessor.
    type WaitState = (u64, u64);

    #[inline(always)]
    async fn enter<M: Machine>(&self, m: &M) -> Result<(u64, bool), (u64, u64)> {
        let mine = m.unique();
        let before = m.swap(&self.arrived, mine, Relaxed).await;
        // Pairs with the release in `depart`.
        let has_departed = m.load(&self.departed, Acquire).await == before;
        if has_departed { Ok((mine, false)) } else { Err((mine, before)) }
    }

    async fn wait<M: Machine>(
        &self,
        m: &M,
        (mine, before): (u64, u64),
    ) -> Result<(u64, bool), M::Stop> {
        let shared = self.shared(m, before);
        // Pairs with the release of the addition in `depart`: if that came first, the predecessor
        // is now seen to have departed.
        if m.compare_exchange(shared, NOBODY, before, Acquire).await.is_err() {
            m.wait_until(&self.departed, Until::Equals(before)).await?;
        } else if m.load(&self.departed, Acquire).await == before {
            clear(m, shared, before).await; // the predecessor may not have seen this thread
        } else {
            m.wait_until(shared, Until::Differs(before)).await?;
        }
        Ok((mine, true))
    }

    #[inline]
    async fn try_acquire<M: Machine>(&self, m: &M) -> Option<(u64, bool)> {
        // Pairs with the release in `depart`.
        let last = m.load(&self.departed, Acquire).await;
        let mine = m.unique();
        let exchanged = m.compare_exchange(&self.arrived, last, mine, Relaxed).await;
        exchanged.ok().map(|_| (mine, false))
    }

    async fn is_held<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.departed, Relaxed).await != m.load(&self.arrived, Relaxed).await
    }

    #[inline(always)]
    async unsafe fn leave<M: Machine>(
        &self,
        m: &M,
        (mine, waited): (u64, bool),
    ) -> Result<(), (u64, bool)> {
        if waited || m.load(self.shared(m, mine), Relaxed).await == mine {
            return Err((mine, waited));
        }
        self.depart(m, mine).await;
        Ok(())
    }

    /// Hands the lock over to the thread that waits at the shared word, if there is one.
    async unsafe fn pass_on<M: Machine>(
        &self,
        m: &M,
        (mine, _): (u64, bool),
    ) -> Result<(), M::Stop> {
        let shared = self.shared(m, mine);
        // Pairs with the acquire of the wait.
        if m.compare_exchange(shared, mine, NOBODY, Release).await.is_ok() {
            m.wake(shared);
        } else {
            self.depart(m, mine).await;
        }
        Ok(())
    }
}
