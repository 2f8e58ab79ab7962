//! The CLH lock: Craig 1993; Magnusson, Landin and Hagersten 1994.
//!
//! One word: the last node of a queue. A thread waits at its predecessor's node, and then owns that
//! node. A failed attempt may leave its node in the queue, with the address of the node before it:
//! the next thread then waits at that node (Scott and Scherer 2001, section 3).

#![expect(unsafe_code, reason = "links nodes by addresses, and relies on a lock")]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use consort_machine::{Line, Machine, Until, Word};

use super::RawLock;

/// The node's word: [`FREE`], [`HELD`], or the address of the node before it if its thread gave up.
const STATE: usize = 0;
/// The thread has released the lock.
const FREE: u64 = 0;
/// The thread holds the lock or waits for it.
const HELD: u64 = 1;

/// A CLH lock: first come, first served. Each thread waits at the line of its predecessor.
#[derive(Debug, Default)]
pub struct Clh {
    /// The address of the last node; 0 before the first use.
    last: Word,
}

impl Clh {
    /// Creates a free lock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { last: Word::new(0) }
    }
}

/// Returns the node at an address that was read from a lock or from a node.
fn node(address: u64) -> &'static Line {
    // SAFETY: `last` holds 0, which the callers exclude, or the address of a node; so does `STATE`,
    // apart from `FREE` and `HELD`.
    unsafe { Line::at(address) }
}

// SAFETY: nodes have one order, that of the exchanges of `last`. A thread holds the lock if the
// node before its own, skipping those of threads that gave up, is `FREE`, or if there is none. That
// node's thread has then released the lock, by a store whose release pairs with the acquire of the
// wait. Since the thread then owns that node, no other thread finds it.
unsafe impl RawLock for Clh {
    const NAME: &'static str = "CLH";
    #[cfg(not(loom))]
    const NEW: Self = Self::new();

    /// The holder's node.
    type Token = &'static Line;
    /// The thread's node, and the address of its predecessor's.
    type WaitState = (&'static Line, u64);

    #[inline(always)]
    async fn enter<M: Machine>(&self, m: &M) -> Result<&'static Line, (&'static Line, u64)> {
        let mine = m.take_line();
        m.store(&mine[STATE], HELD, Relaxed).await;
        let before = m.swap(&self.last, mine.address(), AcqRel).await;
        if before == 0 {
            return Ok(mine);
        }
        let line = node(before);
        if m.load(&line[STATE], Acquire).await != FREE {
            return Err((mine, before));
        }
        m.give_line(line);
        Ok(mine)
    }

    async fn wait<M: Machine>(
        &self,
        m: &M,
        (mine, mut before): (&'static Line, u64),
    ) -> Result<&'static Line, M::Stop> {
        while before != FREE {
            let line = node(before);
            // Pairs with the release in `leave`.
            before = m.wait_until(&line[STATE], Until::Differs(HELD)).await?;
            m.give_line(line);
        }
        Ok(mine)
    }

    async fn try_acquire<M: Machine>(&self, m: &M) -> Option<&'static Line> {
        let last = m.load(&self.last, Acquire).await;
        if last != 0 && m.load(&node(last)[STATE], Relaxed).await == HELD {
            return None;
        }
        let mine = m.take_line();
        m.store(&mine[STATE], HELD, Relaxed).await;
        let entered = m.compare_exchange(&self.last, last, mine.address(), AcqRel).await;
        let Ok(mut before) = entered else {
            m.give_line(mine);
            return None;
        };
        while before != 0 {
            let line = node(before);
            let state = m.load(&line[STATE], Acquire).await;
            if state == HELD {
                // The node was reused after it was found free, so this attempt fails. The next
                // thread continues at that node. It sees the node as this thread does, because of
                // its exchange of `last`.
                m.store(&mine[STATE], before, Relaxed).await;
                m.wake(&mine[STATE]);
                return None;
            }
            m.give_line(line);
            before = state;
        }
        Some(mine)
    }

    async fn is_held<M: Machine>(&self, m: &M) -> bool {
        let last = m.load(&self.last, Acquire).await;
        if last == 0 {
            return false;
        }
        match m.load(&node(last)[STATE], Relaxed).await {
            FREE => false,
            HELD => true,
            // An attempt was given up. Only a queued thread may follow the address in its node, so
            // try to acquire.
            _ => match self.try_acquire(m).await {
                Some(mine) => {
                    // SAFETY: the thread has just taken the lock, with this token.
                    let _ = unsafe { self.leave(m, mine) }.await;
                    false
                }
                None => true,
            },
        }
    }

    #[inline(always)]
    async unsafe fn leave<M: Machine>(
        &self,
        m: &M,
        mine: &'static Line,
    ) -> Result<(), &'static Line> {
        m.store(&mine[STATE], FREE, Release).await; // pairs with the next holder's acquire
        m.wake(&mine[STATE]);
        Ok(())
    }

    async unsafe fn pass_on<M: Machine>(&self, _: &M, _: &'static Line) -> Result<(), M::Stop> {
        Ok(())
    }

    fn retire<M: Machine>(&mut self, m: &M) {
        let mut last = std::mem::take(self).last.atomic().load(Relaxed);
        // A node may still be held: its guard was forgotten, and no thread waits.
        while last > HELD {
            let line = node(last);
            last = line[STATE].atomic().load(Relaxed);
            m.give_line(line);
        }
    }
}
