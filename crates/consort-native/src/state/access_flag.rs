//! A flag that keeps a PE from leaving a call while a peer copies memory that the PE has exposed.
//!
//! Normally a PE waits until all its exposures are detached. Once the job has failed, it cannot
//! wait for that. Instead it must ensure that no peer is copying or will begin to copy:
//!
//! | owner, after it has seen poison | peer, before each copy |
//! | --- | --- |
//! | fences | raises its flag |
//! | waits until the flag is down | fences |
//! | | checks for poison: if there is any, lowers its flag and fails |
//! | | copies, lowers its flag |
//!
//! Poison is final. So either the peer sees it and does not copy, or the owner sees the flag and
//! waits. This is the store-buffering pattern with a sequentially consistent fence on both sides.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use consort_fabric::Poisoned;

use super::poison::PoisonFlag;
use consort_machine::sync::{AtomicU32, fence, yield_now};

/// The flag, on a separate line: not 0 while its PE copies memory that a peer has exposed.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct AccessFlag(AtomicU32);

/// The right to copy exposed memory, until it is dropped.
#[derive(Debug)]
pub struct AccessGuard<'a>(&'a AtomicU32);

impl AccessFlag {
    /// Begins a copy. Only the PE that owns the flag calls this, for one copy at a time.
    ///
    /// # Errors
    /// When the job has failed: the memory may already be gone.
    #[inline(always)]
    pub fn enter(&self, poison: &PoisonFlag) -> Result<AccessGuard<'_>, Poisoned> {
        self.0.store(1, Relaxed);
        let access = AccessGuard(&self.0);
        fence(SeqCst); // pairs with the fence in `drain`
        if poison.is_raised() { Err(Poisoned) } else { Ok(access) }
    }

    /// Lowers the flag in a forked child: the PE does not copy there.
    pub(crate) fn forget(&self) {
        self.0.store(0, Relaxed);
    }

    /// Waits until the PE is not copying. The owner of the memory calls this after it has seen or
    /// raised poison.
    #[cold]
    pub fn drain(&self) {
        fence(SeqCst); // pairs with the fence in `enter`
        while self.0.load(Acquire) != 0 {
            yield_now();
        }
    }
}

impl Drop for AccessGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.store(0, Release); // pairs with the acquire in `drain`
    }
}
