//! A counter that threads share, under each lock and each scheme.
//!
//! An operation increments one number, or the elements of an array (Petrović 2015, section 6.2.2).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context, Result};
use consort_native::affinity::{CpuId, Pinned};
use consort_sync::{
    Delegate, Server,
    delegation::{Backoff, CcSynch, HSynch, HybComb, Locked, MAX_OPS, MpServer, ShmServer},
    locks::RawLock,
};
use lock_api::RawMutex;

/// What an operation increments.
#[derive(Debug)]
pub(super) struct Numbers {
    first: u64,
    others: Box<[u64]>,
}

impl Numbers {
    /// `increments` numbers, of 0; one at least.
    fn new(increments: usize) -> Self {
        Self { first: 0, others: vec![0; increments.saturating_sub(1)].into() }
    }

    #[inline(always)]
    fn increment(&mut self) {
        self.first += 1;
        for number in &mut self.others {
            *number += 1;
        }
    }

    /// How often all have been incremented; `None` if they differ.
    fn count(&self) -> Option<u64> {
        self.others.iter().all(|number| *number == self.first).then_some(self.first)
    }
}

/// A counter of which threads make operations, one at a time.
pub(super) trait Counter: Sync + Sized {
    /// A counter whose operations are so many increments, for so many threads. A server runs on
    /// `cpu`, if that is given.
    ///
    /// # Errors
    /// When the system starts no server, or refuses the core.
    fn new(increments: usize, threads: usize, cpu: Option<CpuId>) -> Result<Self>;

    /// Makes an operation.
    fn operate(&self);

    /// The number of operations that were made; `None` if increments were lost.
    fn count(self) -> Option<u64>;
}

impl<R: RawMutex + Sync> Counter for lock_api::Mutex<R, Numbers> {
    fn new(increments: usize, _: usize, _: Option<CpuId>) -> Result<Self> {
        Ok(Self::new(Numbers::new(increments)))
    }

    #[inline(always)]
    fn operate(&self) {
        self.lock().increment();
    }

    fn count(self) -> Option<u64> {
        self.into_inner().count()
    }
}

impl Counter for std::sync::Mutex<Numbers> {
    fn new(increments: usize, _: usize, _: Option<CpuId>) -> Result<Self> {
        Ok(Self::new(Numbers::new(increments)))
    }

    #[inline(always)]
    fn operate(&self) {
        self.lock().expect("no operation panics").increment();
    }

    fn count(self) -> Option<u64> {
        self.into_inner().expect("no operation panics").count()
    }
}

/// `mcslock`, which spins, and yields between two looks.
impl Counter for mcslock::raw::yields::Mutex<Numbers> {
    fn new(increments: usize, _: usize, _: Option<CpuId>) -> Result<Self> {
        Ok(Self::new(Numbers::new(increments)))
    }

    #[inline(always)]
    fn operate(&self) {
        self.lock_then(Numbers::increment);
    }

    fn count(self) -> Option<u64> {
        self.into_inner().count()
    }
}

/// One number, by an instruction of the processor.
impl Counter for AtomicU64 {
    fn new(_: usize, _: usize, _: Option<CpuId>) -> Result<Self> {
        Ok(Self::new(0))
    }

    #[inline(always)]
    fn operate(&self) {
        self.fetch_add(1, Relaxed);
    }

    fn count(self) -> Option<u64> {
        Some(self.into_inner())
    }
}

/// A scheme without a server, as it is measured.
pub(super) trait Scheme: consort_sync::delegation::Serverless {
    fn make(threads: usize) -> Self;
}

impl<R: RawLock> Scheme for Locked<R> {
    fn make(_: usize) -> Self {
        Self::new()
    }
}

impl Scheme for CcSynch {
    fn make(_: usize) -> Self {
        Self::new()
    }
}

impl Scheme for HSynch {
    /// One group: the groups would be the last-level caches, and most machines have one.
    fn make(_: usize) -> Self {
        Self::new(1, MAX_OPS, |_| 0)
    }
}

impl Scheme for HybComb {
    fn make(_: usize) -> Self {
        Self::new()
    }
}

impl<S: Scheme + Sync> Counter for Delegate<Numbers, S>
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

    fn count(self) -> Option<u64> {
        self.into_inner().count()
    }
}

/// A counter on a server's core: by messages.
pub(super) struct ByMessages(Server<Numbers>);
/// The same by slots, whose clients look at them all the time.
pub(super) struct BySlots(Server<Numbers, ShmServer>);
/// The same with clients that look now and then.
pub(super) struct BySlotsWithBackoff(Server<Numbers, ShmServer>);

/// The rest between two looks of a client at its slot, in cycles.
const LOOK: u64 = 100;
/// Slots besides those of the clients: other threads may have lower numbers.
const MORE_SLOTS: usize = 8;

/// Starts a server on a core, which the calling thread leaves again.
fn on<S>(cpu: Option<CpuId>, start: impl FnOnce() -> std::io::Result<S>) -> Result<S> {
    let _pinned = cpu.map(Pinned::new).transpose().context("a core is refused")?;
    start().context("the system starts no server")
}

/// A counter on a server, whose type says by which scheme.
macro_rules! counter_on_a_server {
    ($name:ident, $scheme:expr) => {
        impl Counter for $name {
            fn new(increments: usize, threads: usize, cpu: Option<CpuId>) -> Result<Self> {
                let scheme = $scheme(threads + MORE_SLOTS);
                on(cpu, || Server::with(scheme, Numbers::new(increments))).map(Self)
            }

            #[inline(always)]
            fn operate(&self) {
                self.0.apply(Numbers::increment);
            }

            fn count(self) -> Option<u64> {
                self.0.into_inner().count()
            }
        }
    };
}

counter_on_a_server!(ByMessages, |_| MpServer::new());
counter_on_a_server!(BySlots, ShmServer::new);
counter_on_a_server!(BySlotsWithBackoff, |clients| {
    ShmServer::new(clients).with_backoff(Backoff::Every(LOOK))
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
