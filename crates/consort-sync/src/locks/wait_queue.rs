//! The queue of a condition variable: Birrell 2003, "Implementing Condition Variables with
//! Semaphores".
//!
//! A thread that waits appends a node, which is a cache line, while it holds the mutex of the
//! condition. It then waits at the node until a notification has removed the node and set its word.
//! A lock protects the list of nodes. A thread whose time limit has expired removes its node,
//! unless a notification has already done so.
//!
//! So a notification wakes the threads that have waited longest, and there are no spurious wakeups.
//! No notification is lost: a node is in the list, or its word is set.
//!
//! A notification reads a single word if the queue is empty. The read needs no ordering: if a
//! thread must be notified of a change, it appended its node before the thread that makes the
//! change took the mutex.
//!
//! `QueuedSemaphore` also uses this queue. There the lock of the semaphore takes the place of the
//! mutex.

#![expect(unsafe_code, reason = "links nodes by addresses, and relies on a lock")]

use std::sync::atomic::Ordering::{Relaxed, Release};

use consort_machine::{Line, Machine, Until, Word};

use super::{RawLock, TestAndSet};

/// The node's word with the address of the next node; 0 if there is none.
const NEXT: usize = 0;
/// The node's word that is 1 once its thread is notified.
const NOTIFIED: usize = 1;

/// The threads that wait for a condition, in the order of arrival.
#[derive(Debug, Default)]
pub struct WaitQueue {
    lock: TestAndSet,
    /// The addresses of the first and the last node; 0 if there is none.
    first: Word,
    last: Word,
    /// The tag of the threads in the queue.
    tag: Word,
}

/// A thread's place in a [`WaitQueue`].
#[derive(Debug)]
pub struct Place(&'static Line);

/// Returns the node at an address that was read from a queue.
fn node(address: u64) -> &'static Line {
    // SAFETY: `first`, `last` and `NEXT` hold 0, which the callers exclude, or addresses of nodes.
    unsafe { Line::at(address) }
}

impl WaitQueue {
    /// Creates a queue without threads.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { lock: TestAndSet::new(), first: Word::new(0), last: Word::new(0), tag: Word::new(0) }
    }

    async fn unlock<M: Machine>(&self, m: &M) -> Result<(), M::Stop> {
        // SAFETY: the callers hold the lock.
        unsafe { self.lock.release(m, ()) }.await
    }

    /// Appends the calling thread, which must then [`wait`](Self::wait). Returns `None` if the
    /// threads in the queue have another tag. The tag stands for the mutex of the condition.
    ///
    /// # Errors
    /// When the wait for the queue's lock ends early.
    pub async fn append<M: Machine>(&self, m: &M, tag: u64) -> Result<Option<Place>, M::Stop> {
        let mine = m.take_line();
        m.store(&mine[NEXT], 0, Relaxed).await;
        m.store(&mine[NOTIFIED], 0, Relaxed).await;
        self.lock.acquire(m).await?;
        if self.is_empty(m).await {
            m.store(&self.first, mine.address(), Relaxed).await;
            m.store(&self.tag, tag, Relaxed).await;
        } else if m.load(&self.tag, Relaxed).await == tag {
            let last = node(m.load(&self.last, Relaxed).await);
            m.store(&last[NEXT], mine.address(), Relaxed).await;
        } else {
            self.unlock(m).await?;
            m.give_line(mine);
            return Ok(None);
        }
        m.store(&self.last, mine.address(), Relaxed).await;
        self.unlock(m).await?;
        Ok(Some(Place(mine)))
    }

    /// Waits until the calling thread is notified.
    ///
    /// # Errors
    /// When the wait ends early: the place is then lost.
    pub async fn wait<M: Machine>(&self, m: &M, Place(mine): Place) -> Result<(), M::Stop> {
        m.wait_until(&mine[NOTIFIED], Until::Equals(1)).await?;
        m.give_line(mine);
        Ok(())
    }

    /// Waits until the calling thread is notified or the clock reaches `at_ns`. Returns whether it
    /// was notified.
    ///
    /// # Errors
    /// When the wait ends early: the place is then lost.
    pub async fn wait_until_time<M: Machine>(
        &self,
        m: &M,
        Place(mine): Place,
        at_ns: u64,
    ) -> Result<bool, M::Stop> {
        let notified = m.wait_until_time(&mine[NOTIFIED], Until::Equals(1), at_ns).await?.is_some()
            || !self.remove(m, mine).await?;
        m.give_line(mine);
        Ok(notified)
    }

    /// Removes a node. Returns whether it was in the list; otherwise its thread has been notified.
    async fn remove<M: Machine>(&self, m: &M, mine: &'static Line) -> Result<bool, M::Stop> {
        self.lock.acquire(m).await?;
        let is_in = m.load(&mine[NOTIFIED], Relaxed).await == 0;
        if is_in {
            let next = m.load(&mine[NEXT], Relaxed).await;
            let (mut before, mut address) = (0, m.load(&self.first, Relaxed).await);
            while address != mine.address() {
                before = address;
                address = m.load(&node(address)[NEXT], Relaxed).await;
            }
            let link = if before == 0 { &self.first } else { &node(before)[NEXT] };
            m.store(link, next, Relaxed).await;
            if next == 0 {
                m.store(&self.last, before, Relaxed).await;
            }
        }
        self.unlock(m).await?;
        Ok(is_in)
    }

    /// Returns whether no thread waits. A thread that must get a later notification is always
    /// counted.
    #[inline(always)]
    pub async fn is_empty<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.first, Relaxed).await == 0
    }

    /// Notifies the first `most` threads in the queue. Returns how many it has notified.
    ///
    /// # Errors
    /// When the wait for the queue's lock ends early.
    pub async fn notify<M: Machine>(&self, m: &M, most: usize) -> Result<usize, M::Stop> {
        self.lock.acquire(m).await?;
        let (mut address, mut notified) = (m.load(&self.first, Relaxed).await, 0);
        while address != 0 && notified < most {
            let first = node(address);
            // Read first, because the thread may reuse its node once it is notified.
            address = m.load(&first[NEXT], Relaxed).await;
            // Pairs with the acquire of the wait.
            m.store(&first[NOTIFIED], 1, Release).await;
            m.wake(&first[NOTIFIED]);
            notified += 1;
        }
        m.store(&self.first, address, Relaxed).await;
        self.unlock(m).await?;
        Ok(notified)
    }
}
