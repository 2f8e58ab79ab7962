//! Locks without data or guards, for any [`Machine`].
//!
//! | lock | order | where threads wait |
//! | --- | --- | --- |
//! | [`Handoff`] | in turns or alternating | the next at the lock, others at their own lines |
//! | [`TestAndSet`] | none | all at one word |
//! | [`Ticket`] | first come, first served | all at one word |
//! | [`Mcs`] | first come, first served | each at its own line |
//! | [`Clh`] | first come, first served | each at the line of its predecessor |
//! | [`Cna`] | first come, first served within a NUMA node, in turns of 63 | each at its own line |
//! | [`Hapax`] | first come, first served | each at a word that few threads share |
//! | [`HybLock`] | first come, first served | each for a message |
//!
//! [`QueuedRwLock`] is a reader-writer lock, [`QueuedSemaphore`] a semaphore, and [`WaitQueue`] the
//! queue of a condition variable.
//!
//! First come, first served is fair, but slow if threads outnumber the processors, because the next
//! thread may have to be woken first.

#![expect(unsafe_code, reason = "relies on a lock for exclusive access")]

mod clh;
mod cna;
mod handoff;
mod hapax;
mod hyblock;
mod mcs;
mod queued_rw;
mod queued_semaphore;
mod test_and_set;
mod ticket;
mod wait_queue;

use std::future::Future;

use consort_machine::Machine;

pub use clh::Clh;
pub use cna::Cna;
pub use handoff::Handoff;
pub use hapax::Hapax;
pub use hyblock::HybLock;
pub use mcs::Mcs;
pub use queued_rw::{Access, QueuedRwLock};
pub use queued_semaphore::QueuedSemaphore;
pub use test_and_set::TestAndSet;
pub use ticket::Ticket;
pub use wait_queue::{Place, WaitQueue};

/// A lock that one thread at a time holds.
///
/// The default value is a lock that nobody holds.
///
/// # Safety
/// Between the end of a successful [`enter`](Self::enter) or [`try_acquire`](Self::try_acquire), or
/// of a [`wait`](Self::wait), and the beginning of the next [`leave`](Self::leave), no other such
/// call ends. What precedes a release happens before what follows the next acquisition.
pub unsafe trait RawLock: Default {
    /// The lock's name in the literature.
    const NAME: &'static str;
    /// A free lock.
    #[cfg(not(loom))]
    const NEW: Self;

    /// The state that the holder keeps until it releases the lock.
    type Token: Copy;
    /// The state that a waiting thread keeps.
    type WaitState;

    /// Takes the lock if it is free. Otherwise returns the state with which the caller must
    /// [`wait`](Self::wait). Does not wait itself.
    fn enter<M: Machine>(
        &self,
        m: &M,
    ) -> impl Future<Output = Result<Self::Token, Self::WaitState>>;

    /// Waits until the calling thread holds the lock, after [`enter`](Self::enter) did not take it.
    ///
    /// # Errors
    /// When the wait ends early: the lock is then lost.
    fn wait<M: Machine>(
        &self,
        m: &M,
        place: Self::WaitState,
    ) -> impl Future<Output = Result<Self::Token, M::Stop>>;

    /// Waits until the calling thread holds the lock.
    ///
    /// # Errors
    /// When the wait ends early: the lock is then lost.
    fn acquire<M: Machine>(&self, m: &M) -> impl Future<Output = Result<Self::Token, M::Stop>> {
        async {
            match self.enter(m).await {
                Ok(token) => Ok(token),
                Err(place) => self.wait(m, place).await,
            }
        }
    }

    /// Takes the lock if no thread holds it or waits for it; otherwise returns `None`. It may also
    /// fail while another thread tries.
    fn try_acquire<M: Machine>(&self, m: &M) -> impl Future<Output = Option<Self::Token>>;

    /// Returns whether the lock is held at present.
    fn is_held<M: Machine>(&self, m: &M) -> impl Future<Output = bool>;

    /// Releases the lock, or returns the holder's token: if the release needs a wait or a message,
    /// or the lock may have to be given to another thread.
    ///
    /// # Safety
    /// The calling thread holds the lock, and got `token` when it took the lock.
    unsafe fn leave<M: Machine>(
        &self,
        m: &M,
        token: Self::Token,
    ) -> impl Future<Output = Result<(), Self::Token>>;

    /// Gives the lock to the next thread, or releases it, after [`leave`](Self::leave) did not
    /// release it.
    ///
    /// # Errors
    /// When a wait ends early.
    ///
    /// # Safety
    /// The calling thread holds the lock, and got `token` from `leave`.
    unsafe fn pass_on<M: Machine>(
        &self,
        m: &M,
        token: Self::Token,
    ) -> impl Future<Output = Result<(), M::Stop>>;

    /// Releases the lock.
    ///
    /// # Errors
    /// When a wait ends early.
    ///
    /// # Safety
    /// The calling thread holds the lock, and got `token` when it took the lock.
    unsafe fn release<M: Machine>(
        &self,
        m: &M,
        token: Self::Token,
    ) -> impl Future<Output = Result<(), M::Stop>> {
        async move {
            // SAFETY: guaranteed by the caller.
            match unsafe { self.leave(m, token) }.await {
                Ok(()) => Ok(()),
                // SAFETY: the thread still holds the lock, and this is what `leave` returned.
                Err(token) => unsafe { self.pass_on(m, token) }.await,
            }
        }
    }

    /// Gives the lock's memory back to the machine. No thread may use the lock any more.
    fn retire<M: Machine>(&mut self, m: &M) {
        let _ = m;
    }
}
