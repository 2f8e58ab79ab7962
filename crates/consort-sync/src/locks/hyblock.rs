//! HYBLOCK: Petrović 2015, section 6.1.1, Algorithm 3. The numbers in comments are its lines.
//!
//! One word: 0 while the lock is free, otherwise the last thread that wants it. A thread that finds
//! another thread in the word sends it a message, and waits for a message that allows it to
//! continue. So handing over the lock reads and writes no memory.
//!
//! Algorithm 3 keeps the next thread in a thread-local variable. Here it is the token, and each
//! lock has a separate queue, so a thread may hold several locks.

#![expect(unsafe_code, reason = "relies on a lock for exclusive access")]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_machine::{Machine, Queue, Thread, Word};

use super::RawLock;

const UNLOCKED: u64 = 0;
/// The message that hands the lock over. Any other message is a thread's word.
const ALLOW: u64 = 0;

/// A HYBLOCK: first come, first served. Threads wait for messages.
#[derive(Debug, Default)]
pub struct HybLock {
    /// [`UNLOCKED`], or a result of [`of_thread`].
    last: Word,
}

/// Returns a thread as a nonzero word.
fn of_thread(thread: Thread) -> u64 {
    u64::from(thread.0) + 1
}

/// Returns the thread of such a word.
fn thread(word: u64) -> Thread {
    Thread(u32::try_from(word - 1).expect("the word holds the number of a thread"))
}

impl HybLock {
    /// Creates a free lock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { last: Word::new(UNLOCKED) }
    }

    /// Returns the queue of this lock's messages. It is empty while no thread holds the lock, so
    /// the lock may move.
    fn queue(&self) -> Queue {
        Queue(std::ptr::from_ref(self).addr() as u64)
    }
}

// SAFETY: a thread holds the lock if it found `UNLOCKED`, or once it has received `ALLOW`. Its
// predecessor sends that once, in its release, since each exchange of `last` returns a different
// thread. A message happens before its receipt, and the release of the exchange that unlocks pairs
// with the acquire of the next swap.
unsafe impl RawLock for HybLock {
    const NAME: &'static str = "HYBLOCK";
    #[cfg(not(loom))]
    const NEW: Self = Self::new();

    /// The next thread, if already known.
    type Token = Option<Thread>;
    /// The predecessor.
    type WaitState = Thread;

    #[inline(always)]
    async fn enter<M: Machine>(&self, m: &M) -> Result<Option<Thread>, Thread> {
        // 8 and 9.
        match m.swap(&self.last, of_thread(m.thread()), Acquire).await {
            UNLOCKED => Ok(None),
            before => Err(thread(before)),
        }
    }

    async fn wait<M: Machine>(&self, m: &M, before: Thread) -> Result<Option<Thread>, M::Stop> {
        m.send(before, self.queue(), &[of_thread(m.thread())]).await?; // 10
        let [first] = m.receive(self.queue()).await?;
        if first == ALLOW {
            return Ok(None);
        }
        // 13 and 14: the next thread's message arrived before the lock was handed over. No further
        // message follows, unless this thread already holds the lock: then it waits forever, as
        // with any lock.
        while m.receive(self.queue()).await? != [ALLOW] {}
        Ok(Some(thread(first)))
    }

    #[inline]
    async fn try_acquire<M: Machine>(&self, m: &M) -> Option<Option<Thread>> {
        let me = of_thread(m.thread());
        m.compare_exchange(&self.last, UNLOCKED, me, Acquire).await.ok().map(|_| None)
    }

    async fn is_held<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.last, Relaxed).await != UNLOCKED
    }

    #[inline(always)]
    async unsafe fn leave<M: Machine>(
        &self,
        m: &M,
        next: Option<Thread>,
    ) -> Result<(), Option<Thread>> {
        // 16 and 20. A message here comes from the next thread.
        if next.is_some() || !m.is_empty(self.queue()).await {
            return Err(next);
        }
        // 21. Pairs with the acquire of the next swap.
        let me = of_thread(m.thread());
        m.compare_exchange(&self.last, me, UNLOCKED, Release).await.map(|_| ()).map_err(|_| next)
    }

    async unsafe fn pass_on<M: Machine>(&self, m: &M, next: Option<Thread>) -> Result<(), M::Stop> {
        let next = match next {
            Some(next) => next,
            // 23: its message is there, or will come.
            None => {
                let [next] = m.receive(self.queue()).await?;
                thread(next)
            }
        };
        m.send(next, self.queue(), &[ALLOW]).await // 17 and 24
    }
}
