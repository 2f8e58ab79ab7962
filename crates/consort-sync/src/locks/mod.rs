//! Locks, without data and without guards, for any [`Machine`].
//!
//! | lock | order | who waits where |
//! | --- | --- | --- |
//! | [`Handoff`] | turns of a millisecond | the next at the lock, others at their own lines |
//! | [`TestAndSet`] | none | all at one word |
//! | [`Ticket`] | first come, first served | all at one word |
//! | [`Mcs`] | first come, first served | each at its own line |
//! | [`Clh`] | first come, first served | each at the line of the thread before it |
//! | [`HybLock`] | first come, first served | each for a message |
//!
//! First come, first served is fair, and slow where threads outnumber the processors: whoever is
//! next may have to be woken first.

#![expect(unsafe_code, reason = "a lock is trusted to exclude")]

mod clh;
mod handoff;
mod hyblock;
mod mcs;
mod test_and_set;
mod ticket;

use std::future::Future;

use consort_machine::Machine;

pub use clh::Clh;
pub use handoff::Handoff;
pub use hyblock::HybLock;
pub use mcs::Mcs;
pub use test_and_set::TestAndSet;
pub use ticket::Ticket;

/// A lock: one thread at a time holds it.
///
/// The default value is a lock that nobody holds.
///
/// # Safety
/// Between the end of a successful [`enter`](Self::enter) or
/// [`try_acquire`](Self::try_acquire), or of a [`wait`](Self::wait), and the beginning of the next
/// [`leave`](Self::leave), no other one ends; and what came before a release happens before what
/// comes after the next acquisition.
pub unsafe trait RawLock: Default {
    /// The lock's name in the literature.
    const NAME: &'static str;
    /// A free lock.
    #[cfg(not(loom))]
    const NEW: Self;

    /// What the holder keeps until it releases the lock.
    type Token: Copy;
    /// What a thread keeps that waits.
    type Place;

    /// Takes the lock if it is free, or else a place to wait at. It does not wait itself.
    fn enter<M: Machine>(&self, m: &M) -> impl Future<Output = Result<Self::Token, Self::Place>>;

    /// Waits at a place until the calling thread holds the lock.
    ///
    /// # Errors
    /// When the wait ends early: the lock is then lost.
    fn wait<M: Machine>(
        &self,
        m: &M,
        place: Self::Place,
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

    /// Takes the lock if nobody holds it or waits for it; otherwise returns `None`. It may also
    /// fail while another thread tries.
    fn try_acquire<M: Machine>(&self, m: &M) -> impl Future<Output = Option<Self::Token>>;

    /// Whether the lock is held at present.
    fn is_held<M: Machine>(&self, m: &M) -> impl Future<Output = bool>;

    /// Releases the lock if that takes no wait and no message; otherwise returns what the holder
    /// keeps.
    ///
    /// # Safety
    /// The calling thread holds the lock, and got `token` when it took it.
    unsafe fn leave<M: Machine>(
        &self,
        m: &M,
        token: Self::Token,
    ) -> impl Future<Output = Result<(), Self::Token>>;

    /// Gives the lock to the next thread, after [`leave`](Self::leave) has not released it.
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
    /// The calling thread holds the lock, and got `token` when it took it.
    unsafe fn release<M: Machine>(
        &self,
        m: &M,
        token: Self::Token,
    ) -> impl Future<Output = Result<(), M::Stop>> {
        async move {
            // SAFETY: the caller's promise.
            match unsafe { self.leave(m, token) }.await {
                Ok(()) => Ok(()),
                // SAFETY: the thread still holds the lock, and this is what `leave` returned.
                Err(token) => unsafe { self.pass_on(m, token) }.await,
            }
        }
    }

    /// Returns what the lock keeps of the machine, when nobody uses it any more.
    fn retire<M: Machine>(&mut self, m: &M) {
        let _ = m;
    }
}
