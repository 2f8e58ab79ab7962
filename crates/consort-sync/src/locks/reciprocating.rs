//! The reciprocating lock: Dice and Kogan 2025, "Reciprocating Locks" (PPoPP).
//!
//! One word: the top of a stack of nodes. An arriving thread puts its node on the stack with one
//! exchange, which returns the node below, and waits at its own node. Once the threads that arrived
//! earlier have had the lock, the holder detaches the stack with another exchange: the nodes are
//! now a segment. The lock goes down the segment, so the thread that arrived last is first.
//! Meanwhile others arrive on a new stack. While a thread waits, another thread gets the lock at
//! most twice: once in the segment in progress, and once on top of the stack.
//!
//! | `arrivals` | meaning |
//! | --- | --- |
//! | 0 | the lock is free |
//! | [`EMPTY`] | a thread holds the lock, and no thread has arrived since the last was admitted |
//! | an address | the node on the top |
//!
//! If a thread takes the free lock, its own node is the bottom of the stack, although the thread
//! does not wait. The lock is therefore handed over with the address at which the segment ends. A
//! thread whose neighbour below is that node is the last of its segment. Threads only compare that
//! address, because its node may already be in use elsewhere.
//!
//! A thread needs its node until it has the lock, or until it releases a lock that was free.

#![expect(unsafe_code, reason = "links nodes by addresses, and relies on a lock")]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use consort_machine::{Line, Machine, Until, Word};

use super::RawLock;

/// The node's word that is 0 while its thread waits. It then holds the end of the segment.
const GATE: usize = 0;
/// No thread is on the stack. As the end of a segment: the segment has no node at its bottom.
const EMPTY: u64 = 1;
/// Instead of a node: no thread of the segment is left.
const LAST: u64 = 0;

/// A reciprocating lock: groups of threads are served in the order of arrival, and within a group
/// the last is first. Each thread waits at its own line.
#[derive(Debug, Default)]
pub struct Reciprocating {
    arrivals: Word,
}

impl Reciprocating {
    /// Creates a free lock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { arrivals: Word::new(0) }
    }
}

/// Returns the node at an address that was read from a lock.
fn node(address: u64) -> &'static Line {
    // SAFETY: apart from 0 and `EMPTY`, which the callers exclude, `arrivals` and tokens hold
    // addresses of nodes.
    unsafe { Line::at(address) }
}

/// Admits the thread of a node, whose segment ends at `end`.
async fn admit<M: Machine>(m: &M, node: &Line, end: u64) {
    m.store(&node[GATE], end, Release).await; // pairs with the acquire of the wait
    m.wake(&node[GATE]);
}

// SAFETY: a thread holds the lock if it changed `arrivals` from 0, or once its gate is open. Only
// the holder opens a gate, once, in its release: the gate below its own node, or that of the top of
// the stack, which it detaches. Nobody waits below the end of the segment, so each thread on the
// stack is admitted once, and `arrivals` is not 0 until the holder finds the stack as it left it.
// The release of the store that opens a gate, or of the exchange that frees the lock, pairs with
// the acquire of the wait, or of the exchange that takes it.
unsafe impl RawLock for Reciprocating {
    const NAME: &'static str = "reciprocating";
    #[cfg(not(loom))]
    const NEW: Self = Self::new();

    /// The node of the next thread of the segment, or [`LAST`]; and the end of the segment. If there
    /// is no next thread, the end is the holder's node, or [`EMPTY`] if the holder has none.
    type Token = (u64, u64);
    /// The thread's node, and the node below it or [`EMPTY`].
    type WaitState = (&'static Line, u64);

    #[inline(always)]
    async fn enter<M: Machine>(&self, m: &M) -> Result<(u64, u64), (&'static Line, u64)> {
        let mine = m.take_line();
        m.store(&mine[GATE], 0, Relaxed).await;
        // The release pairs with the acquire of whoever opens the gate.
        match m.swap(&self.arrivals, mine.address(), AcqRel).await {
            0 => Ok((LAST, mine.address())),
            below => Err((mine, below)),
        }
    }

    async fn wait<M: Machine>(
        &self,
        m: &M,
        (mine, below): (&'static Line, u64),
    ) -> Result<(u64, u64), M::Stop> {
        let end = m.wait_until(&mine[GATE], Until::Differs(0)).await?;
        m.give_line(mine);
        // Nobody waits at the end, and that node may already belong to another thread.
        Ok(if below == end { (LAST, EMPTY) } else { (below, end) })
    }

    #[inline]
    async fn try_acquire<M: Machine>(&self, m: &M) -> Option<(u64, u64)> {
        let taken = m.compare_exchange(&self.arrivals, 0, EMPTY, Acquire).await;
        taken.ok().map(|_| (LAST, EMPTY))
    }

    async fn is_held<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.arrivals, Relaxed).await != 0
    }

    #[inline(always)]
    async unsafe fn leave<M: Machine>(
        &self,
        m: &M,
        (next, end): (u64, u64),
    ) -> Result<(), (u64, u64)> {
        if next != LAST {
            return Err((next, end));
        }
        // Pairs with the acquire of the next holder's exchange.
        let freed = m.compare_exchange(&self.arrivals, end, 0, Release).await;
        if freed.is_ok() && end != EMPTY {
            m.give_line(node(end));
        }
        freed.map(|_| ()).map_err(|_| (next, end))
    }

    async unsafe fn pass_on<M: Machine>(
        &self,
        m: &M,
        (next, end): (u64, u64),
    ) -> Result<(), M::Stop> {
        if next != LAST {
            admit(m, node(next), end).await;
            return Ok(());
        }
        // Pairs with the releases of those who have arrived.
        let top = m.swap(&self.arrivals, EMPTY, Acquire).await;
        admit(m, node(top), end).await;
        if end != EMPTY {
            m.give_line(node(end));
        }
        Ok(())
    }
}
