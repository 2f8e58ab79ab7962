//! The ticket lock: Mellor-Crummey and Scott 1991, section 2.2.
//!
//! Two words: the next ticket, and the ticket that holds the lock. A thread takes a ticket and
//! waits until that ticket is served.

#![expect(unsafe_code, reason = "relies on a lock for exclusive access")]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_machine::{Machine, Until, Word};

use super::RawLock;

/// A ticket lock: first come, first served. All threads wait at one word.
#[derive(Debug, Default)]
pub struct Ticket {
    next: Word,
    served: Word,
}

impl Ticket {
    /// Creates a free lock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { next: Word::new(0), served: Word::new(0) }
    }
}

// SAFETY: each ticket is given once, and each release increments `served`; the acquire of a wait
// for it pairs with the release of the store.
unsafe impl RawLock for Ticket {
    const NAME: &'static str = "ticket";
    #[cfg(not(loom))]
    const NEW: Self = Self::new();

    /// The ticket.
    type Token = u64;
    type WaitState = u64;

    #[inline(always)]
    async fn enter<M: Machine>(&self, m: &M) -> Result<u64, u64> {
        let ticket = m.fetch_add(&self.next, 1, Relaxed).await;
        if m.load(&self.served, Acquire).await == ticket { Ok(ticket) } else { Err(ticket) }
    }

    async fn wait<M: Machine>(&self, m: &M, ticket: u64) -> Result<u64, M::Stop> {
        m.wait_until(&self.served, Until::Equals(ticket)).await
    }

    #[inline]
    async fn try_acquire<M: Machine>(&self, m: &M) -> Option<u64> {
        let ticket = m.load(&self.served, Acquire).await;
        let next = ticket.wrapping_add(1);
        m.compare_exchange(&self.next, ticket, next, Relaxed).await.ok()
    }

    async fn is_held<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.served, Relaxed).await != m.load(&self.next, Relaxed).await
    }

    #[inline(always)]
    async unsafe fn leave<M: Machine>(&self, m: &M, ticket: u64) -> Result<(), u64> {
        // Pairs with the acquire of the next holder.
        m.store(&self.served, ticket.wrapping_add(1), Release).await;
        m.wake(&self.served);
        Ok(())
    }

    async unsafe fn pass_on<M: Machine>(&self, _: &M, _: u64) -> Result<(), M::Stop> {
        Ok(())
    }
}
