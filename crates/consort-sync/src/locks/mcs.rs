//! The MCS lock: Mellor-Crummey and Scott 1991, section 2.4.
//!
//! One word: the last node of a queue, 0 while the lock is free. Each thread has a node, a line, at
//! which it waits. Its predecessor clears a word there to hand over the lock. Two words of the line
//! belong to the lock, the others to the holder.

#![expect(unsafe_code, reason = "links nodes by addresses, and relies on a lock")]

use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use consort_machine::{Line, Machine, Until, Word};

use super::RawLock;

/// The node's word with the address of the next node; 0 if there is none yet.
const NEXT: usize = 0;
/// The node's word that is 1 while its thread waits.
const WAITS: usize = 1;

/// An MCS lock: first come, first served. Each thread waits at its own line.
#[derive(Debug, Default)]
pub struct Mcs {
    last: Word,
}

impl Mcs {
    /// Creates a free lock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { last: Word::new(0) }
    }

    /// Like [`enter`](RawLock::enter), with a node that the caller has taken.
    #[inline(always)]
    pub(super) async fn enter_with<M: Machine>(
        &self,
        m: &M,
        mine: &'static Line,
    ) -> Result<&'static Line, (&'static Line, u64)> {
        m.store(&mine[NEXT], 0, Relaxed).await;
        match m.swap(&self.last, mine.address(), AcqRel).await {
            0 => Ok(mine),
            before => Err((mine, before)),
        }
    }

    /// Returns the node of the next holder, after [`leave`](RawLock::leave) did not release the
    /// lock.
    pub(super) async fn next<M: Machine>(
        m: &M,
        mine: &'static Line,
    ) -> Result<&'static Line, M::Stop> {
        Ok(node(m.wait_until(&mine[NEXT], Until::Differs(0)).await?))
    }
}

/// Returns the node at an address that was read from a lock or from a node.
fn node(address: u64) -> &'static Line {
    // SAFETY: `last` and `NEXT` hold 0, which the callers exclude, or addresses of nodes.
    unsafe { Line::at(address) }
}

// SAFETY: a thread holds the lock if it found the queue empty, or once its predecessor in the queue
// has cleared `WAITS`, in its release. The release of that store, or of the exchange that empties
// the queue, pairs with the acquire of the wait, or of the swap.
unsafe impl RawLock for Mcs {
    const NAME: &'static str = "MCS";
    #[cfg(not(loom))]
    const NEW: Self = Self::new();

    /// The holder's node.
    type Token = &'static Line;
    /// The thread's node, and the address of its predecessor's.
    type WaitState = (&'static Line, u64);

    #[inline(always)]
    async fn enter<M: Machine>(&self, m: &M) -> Result<&'static Line, (&'static Line, u64)> {
        self.enter_with(m, m.take_line()).await
    }

    async fn wait<M: Machine>(
        &self,
        m: &M,
        (mine, before): (&'static Line, u64),
    ) -> Result<&'static Line, M::Stop> {
        m.store(&mine[WAITS], 1, Relaxed).await;
        // Pairs with the acquire of the wait in `pass_on`.
        let next = &node(before)[NEXT];
        m.store(next, mine.address(), Release).await;
        m.wake(next);
        m.wait_until(&mine[WAITS], Until::Equals(0)).await?;
        Ok(mine)
    }

    #[inline]
    async fn try_acquire<M: Machine>(&self, m: &M) -> Option<&'static Line> {
        let mine = m.take_line();
        m.store(&mine[NEXT], 0, Relaxed).await;
        if m.compare_exchange(&self.last, 0, mine.address(), AcqRel).await.is_ok() {
            return Some(mine);
        }
        m.give_line(mine);
        None
    }

    async fn is_held<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.last, Relaxed).await != 0
    }

    #[inline(always)]
    async unsafe fn leave<M: Machine>(
        &self,
        m: &M,
        mine: &'static Line,
    ) -> Result<(), &'static Line> {
        if m.load(&mine[NEXT], Relaxed).await != 0 {
            return Err(mine);
        }
        // Pairs with the acquire of the next holder's swap.
        let emptied = m.compare_exchange(&self.last, mine.address(), 0, Release).await;
        emptied.map(|_| m.give_line(mine)).map_err(|_| mine)
    }

    async unsafe fn pass_on<M: Machine>(&self, m: &M, mine: &'static Line) -> Result<(), M::Stop> {
        let waits = &Self::next(m, mine).await?[WAITS];
        m.store(waits, 0, Release).await; // pairs with the acquire of the next holder's wait
        m.wake(waits);
        m.give_line(mine);
        Ok(())
    }
}
