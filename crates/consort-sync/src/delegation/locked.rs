//! A lock under which each thread executes its own operations.

#![expect(unsafe_code, reason = "relies on a scheme for exclusive access")]

use consort_machine::Machine;
#[cfg(not(loom))]
use consort_machine::at_once;

use super::{Scheme, Serverless, Service};
use crate::locks::{Handoff, RawLock};
#[cfg(not(loom))]
use crate::{
    machine::MACHINE,
    mutex::{acquire, release},
};

/// Operations under a lock.
#[derive(Debug)]
pub struct Locked<R = Handoff> {
    lock: R,
}

impl Locked {
    /// Creates a scheme with the default lock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self::with(Handoff::new())
    }
}

impl Default for Locked {
    fn default() -> Self {
        Self::with(Handoff::default())
    }
}

impl<R: RawLock> Locked<R> {
    /// Creates a scheme with this lock, which must be free.
    #[must_use]
    pub const fn with(lock: R) -> Self {
        Self { lock }
    }

    pub(super) const fn lock(&self) -> &R {
        &self.lock
    }
}

// SAFETY: the lock excludes other threads.
unsafe impl<R: RawLock> Scheme for Locked<R> {
    const NAME: &'static str = R::NAME;
    type Local = ();

    #[inline]
    async fn apply<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        (): &(),
        service: &S,
        operation: u64,
        argument: u64,
    ) -> Result<u64, M::Stop> {
        let token = self.lock.acquire(m).await?;
        let result = service.serve(m, operation, argument).await;
        // SAFETY: the lock was acquired with this token.
        unsafe { self.lock.release(m, token) }.await?;
        Ok(result)
    }

    fn retire<M: Machine>(&mut self, m: &M) {
        self.lock.retire(m);
    }

    #[cfg(not(loom))]
    #[inline(always)]
    fn in_place<I, T>(&self, input: I, section: impl FnOnce(I) -> T) -> Result<T, I> {
        let _held = Held { lock: &self.lock, token: acquire(&self.lock) };
        Ok(section(input))
    }

    #[cfg(not(loom))]
    #[inline(always)]
    fn in_place_if_free<I, T>(&self, input: I, section: impl FnOnce(I) -> T) -> Result<T, I> {
        let Some(token) = at_once(self.lock.try_acquire(&MACHINE)) else {
            return Err(input);
        };
        let _held = Held { lock: &self.lock, token };
        Ok(section(input))
    }
}

impl<R: RawLock> Serverless for Locked<R> {}

/// A lock that the calling thread holds until this is dropped.
#[cfg(not(loom))]
struct Held<'l, R: RawLock> {
    lock: &'l R,
    token: R::Token,
}

#[cfg(not(loom))]
impl<R: RawLock> Drop for Held<'_, R> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this thread has acquired the lock with this token.
        unsafe { release(self.lock, self.token) };
    }
}
