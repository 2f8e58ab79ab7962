//! A counting semaphore (Dijkstra 1965, section 4) that serves threads in the order of arrival. A
//! thread that stops waiting makes the next thread the first, as in "passing the baton" (Andrews
//! 1991, section 4.4).
//!
//! The first waiting thread waits at the word itself, until there are enough permits. The others
//! wait in a [`WaitQueue`]. When the first has its permits, or its time limit has expired, it
//! notifies the next thread, which is then the first. While there is a first thread, the others do
//! not take permits. So threads that need few permits do not overtake a thread that needs many.
//!
//! | `state` | meaning |
//! | --- | --- |
//! | bits 1 to 63 | the number of permits that no thread has |
//! | bit 0 | a thread is the first |
//!
//! A lock protects bit 0 and the queue, so that they change together.

#![expect(unsafe_code, reason = "relies on a lock for exclusive access")]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_machine::{Machine, Until, Word};

use super::{RawLock, TestAndSet, WaitQueue};

const HAS_FIRST: u64 = 1;
const PERMIT: u64 = 2;

/// The tag of all threads in the queue.
const TAG: u64 = 0;

/// A counting semaphore: first come, first served.
#[derive(Debug, Default)]
pub struct QueuedSemaphore {
    state: Word,
    lock: TestAndSet,
    /// The threads behind the first one.
    queue: WaitQueue,
}

impl QueuedSemaphore {
    /// Creates a semaphore with this number of permits, of which there may be at most 2^62 at any
    /// time.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(permits: u64) -> Self {
        let state = Word::new(PERMIT * permits);
        Self { state, lock: TestAndSet::new(), queue: WaitQueue::new() }
    }

    /// Returns the number of permits that no thread has at present.
    pub async fn permits<M: Machine>(&self, m: &M) -> u64 {
        m.load(&self.state, Relaxed).await / PERMIT
    }

    /// Takes `count` permits if there are enough and no thread waits. Returns whether it did.
    #[inline]
    pub async fn try_acquire<M: Machine>(&self, m: &M, count: u64) -> bool {
        let mut state = m.load(&self.state, Relaxed).await;
        while state & HAS_FIRST == 0 && state >= PERMIT * count {
            // Pairs with the release in `release`.
            match m.compare_exchange(&self.state, state, state - PERMIT * count, Acquire).await {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Waits until it has taken `count` permits, or until the clock reaches `at_ns`. Returns
    /// whether it has taken them.
    ///
    /// # Errors
    /// When a wait ends early: the semaphore is then lost.
    pub async fn acquire<M: Machine>(
        &self,
        m: &M,
        count: u64,
        at_ns: Option<u64>,
    ) -> Result<bool, M::Stop> {
        if self.try_acquire(m, count).await {
            return Ok(true);
        }
        if !self.become_first(m, at_ns).await? {
            return Ok(false);
        }
        let enough = Until::AtLeast(PERMIT * count);
        let has_enough = match at_ns {
            None => m.wait_until(&self.state, enough).await.map(Some)?,
            Some(at_ns) => m.wait_until_time(&self.state, enough, at_ns).await?,
        };
        if has_enough.is_some() {
            m.fetch_add(&self.state, (PERMIT * count).wrapping_neg(), Relaxed).await;
        }
        self.let_next_in(m).await?;
        Ok(has_enough.is_some())
    }

    /// Waits until the calling thread is the first, or until the clock reaches `at_ns`. Returns
    /// whether it is the first.
    async fn become_first<M: Machine>(&self, m: &M, at_ns: Option<u64>) -> Result<bool, M::Stop> {
        self.lock.acquire(m).await?;
        let place = if m.load(&self.state, Relaxed).await & HAS_FIRST != 0 {
            self.queue.append(m, TAG).await?
        } else {
            m.fetch_add(&self.state, HAS_FIRST, Relaxed).await;
            None
        };
        self.unlock(m).await?;
        match (place, at_ns) {
            (None, _) => Ok(true),
            (Some(place), None) => self.queue.wait(m, place).await.map(|()| true),
            (Some(place), Some(at_ns)) => self.queue.wait_until_time(m, place, at_ns).await,
        }
    }

    /// Makes the next thread the first. The caller is the first.
    async fn let_next_in<M: Machine>(&self, m: &M) -> Result<(), M::Stop> {
        self.lock.acquire(m).await?;
        if self.queue.notify(m, 1).await? == 0 {
            m.fetch_add(&self.state, HAS_FIRST.wrapping_neg(), Relaxed).await;
        }
        self.unlock(m).await
    }

    async fn unlock<M: Machine>(&self, m: &M) -> Result<(), M::Stop> {
        // SAFETY: the callers hold the lock.
        unsafe { self.lock.release(m, ()) }.await
    }

    /// Gives `count` permits. Returns the number of permits that no thread had at that time.
    #[inline]
    pub async fn release<M: Machine>(&self, m: &M, count: u64) -> u64 {
        // Pairs with the acquire of the thread that takes a permit.
        let before = m.fetch_add(&self.state, PERMIT * count, Release).await;
        if before & HAS_FIRST != 0 {
            m.wake(&self.state);
        }
        before / PERMIT + count
    }
}
