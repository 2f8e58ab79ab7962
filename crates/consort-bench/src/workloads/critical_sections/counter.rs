//! A counter that threads share, under each lock and each scheme.
//!
//! An operation increments one number, or the elements of an array (Petrović 2015, section 6.2.3).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context, Result};
use consort_machine::affinity::{CpuId, Pinned};
use consort_sync::{
    Delegate, Mutex, Server,
    delegation::{
        Backoff, CcSynch, FallbackServer, HSynch, HybComb, Locked, MAX_OPS, MpServer, Scheme,
        Serverless, ShmServer,
    },
    locks::RawLock,
};
use lock_api::RawMutex;

/// The numbers that an operation increments.
#[derive(Debug)]
pub(super) struct Numbers {
    first: u64,
    others: Box<[u64]>,
}

impl Numbers {
    /// Creates `increments` numbers, at least one, with value 0.
    fn new(increments: usize) -> Self {
        Self { first: 0, others: vec![0; increments.saturating_sub(1)].into() }
    }

    #[inline(always)]
    pub(super) fn increment(&mut self) {
        self.first += 1;
        for number in &mut self.others {
            *number += 1;
        }
    }

    /// Returns how often all have been incremented; `None` if they differ.
    fn count(&self) -> Option<u64> {
        self.others.iter().all(|number| *number == self.first).then_some(self.first)
    }
}

/// An object on which threads perform operations: a counter, or a [`Container`](super::containers).
pub(super) trait Counter: Sync + Sized {
    /// Creates an object for `threads` threads. Each operation of a counter makes `increments`
    /// increments. A server runs on `cpu`, if given.
    ///
    /// # Errors
    /// If the system starts no server, or refuses the core.
    fn new(increments: usize, threads: usize, cpu: Option<CpuId>) -> Result<Self>;

    fn operate(&self);

    /// Returns a function that performs the operations of a thread, one per call.
    #[inline(always)]
    fn operations(&self) -> impl FnMut() {
        || self.operate()
    }

    /// Returns whether its state is the result of `operations` operations.
    fn has_made(self, operations: u64) -> bool;
}

/// Counters under a lock, which differ in how they are made, locked and taken apart.
macro_rules! counters_under_locks {
    ($([$($bounds:tt)*] $lock:ty, $new:expr, $increment:expr, $into_inner:expr;)*) => {
        $(impl<$($bounds)*> Counter for $lock {
            fn new(increments: usize, _: usize, _: Option<CpuId>) -> Result<Self> {
                Ok($new(Numbers::new(increments)))
            }

            #[inline(always)]
            fn operate(&self) {
                $increment(self);
            }

            fn has_made(self, operations: u64) -> bool {
                $into_inner(self).count() == Some(operations)
            }
        })*
    };
}

counters_under_locks! {
    [R: RawMutex + Sync] lock_api::Mutex<R, Numbers>,
        Self::new, |lock: &Self| lock.lock().increment(), Self::into_inner;
    [R: RawLock + Sync] Mutex<Numbers, R>,
        |numbers| Self::with(R::NEW, numbers), |lock: &Self| lock.lock().increment(),
        Self::into_inner;
    [] std::sync::Mutex<Numbers>,
        Self::new, |lock: &Self| lock.lock().expect("no operation panics").increment(),
        |lock: Self| lock.into_inner().expect("no operation panics");
    // It spins and yields between two looks.
    [] mcslock::raw::yields::Mutex<Numbers>,
        Self::new, |lock: &Self| lock.lock_then(Numbers::increment), Self::into_inner;
}

/// One number, by a processor instruction.
impl Counter for AtomicU64 {
    fn new(_: usize, _: usize, _: Option<CpuId>) -> Result<Self> {
        Ok(Self::new(0))
    }

    #[inline(always)]
    fn operate(&self) {
        self.fetch_add(1, Relaxed);
    }

    fn has_made(self, operations: u64) -> bool {
        self.into_inner() == operations
    }
}

/// A scheme, configured for measurement.
pub(super) trait ConfiguredScheme: Scheme {
    fn make(threads: usize) -> Self;
}

impl<R: RawLock> ConfiguredScheme for Locked<R> {
    fn make(_: usize) -> Self {
        Self::with(R::NEW)
    }
}

macro_rules! schemes_without_settings {
    ($($scheme:ty)*) => {
        $(impl ConfiguredScheme for $scheme {
            fn make(_: usize) -> Self {
                Self::new()
            }
        })*
    };
}

schemes_without_settings!(CcSynch FallbackServer HybComb MpServer);

impl ConfiguredScheme for HSynch {
    /// One group. There should be a group for each last-level cache, and most machines have one.
    fn make(_: usize) -> Self {
        Self::new(1, MAX_OPS, |_| 0)
    }
}

impl ConfiguredScheme for ShmServer {
    fn make(threads: usize) -> Self {
        Self::new(threads + MORE_SLOTS)
    }
}

impl<S: ConfiguredScheme + Serverless + Sync> Counter for Delegate<Numbers, S>
where
    S::Local: Send,
{
    fn new(increments: usize, threads: usize, _: Option<CpuId>) -> Result<Self> {
        Ok(Self::with(S::make(threads), Numbers::new(increments)))
    }

    #[inline(always)]
    fn operate(&self) {
        self.apply(Numbers::increment);
    }

    fn has_made(self, operations: u64) -> bool {
        self.into_inner().count() == Some(operations)
    }
}

/// A counter of a server that falls back to a lock.
pub(super) struct WithFallback(pub(super) Server<Numbers>);
/// A counter on a server's core, reached by messages.
pub(super) struct ByMessages(pub(super) Server<Numbers, MpServer>);
/// The same by slots, which clients poll all the time.
pub(super) struct BySlots(Server<Numbers, ShmServer>);
/// The same with clients that poll now and then.
pub(super) struct BySlotsWithBackoff(Server<Numbers, ShmServer>);

/// The pause between two looks of a client at its slot, in cycles.
const LOOK: u64 = 100;
/// Slots besides those of the clients, because other threads may have lower numbers.
const MORE_SLOTS: usize = 8;

/// Starts a server on a core, which the calling thread then leaves.
pub(super) fn on<S>(cpu: Option<CpuId>, start: impl FnOnce() -> std::io::Result<S>) -> Result<S> {
    let _pinned = cpu.map(Pinned::new).transpose().context("cannot pin a thread to its core")?;
    start().context("cannot start the server")
}

/// A counter on a server, whose type determines the scheme.
macro_rules! counter_on_a_server {
    ($name:ident, $scheme:expr) => {
        impl Counter for $name {
            fn new(increments: usize, threads: usize, cpu: Option<CpuId>) -> Result<Self> {
                let scheme = $scheme(threads);
                on(cpu, || Server::with(scheme, Numbers::new(increments))).map(Self)
            }

            #[inline(always)]
            fn operate(&self) {
                self.0.apply(Numbers::increment);
            }

            fn has_made(self, operations: u64) -> bool {
                self.0.into_inner().count() == Some(operations)
            }
        }
    };
}

counter_on_a_server!(WithFallback, FallbackServer::make);
counter_on_a_server!(ByMessages, MpServer::make);
counter_on_a_server!(BySlots, ShmServer::make);
counter_on_a_server!(BySlotsWithBackoff, |threads| {
    ShmServer::make(threads).with_backoff(Backoff::Every(LOOK))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_increments_are_found() {
        let mut numbers = Numbers::new(3);
        numbers.increment();
        assert_eq!(numbers.count(), Some(1));
        numbers.others[1] -= 1;
        assert_eq!(numbers.count(), None);
        assert_eq!(Numbers::new(0).others.len(), 0);
    }
}
