//! The flag that keeps a lender from leaving while a peer copies memory that it has lent.
//!
//! As a rule a lender waits until all is given back. Once the job has failed it may not wait for
//! that, and has to know that nobody is copying, nor begins to:
//!
//! | lender, after it has seen poison | borrower, before each copy |
//! | --- | --- |
//! | fences | raises its flag |
//! | waits until the flag is down | fences |
//! | | looks for poison: if there is any, lowers its flag and fails |
//! | | copies, lowers its flag |
//!
//! Poison is final. So either the borrower sees it and does not begin, or the lender sees the flag
//! and waits: the store-buffer pattern with a sequentially consistent fence on both sides.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use consort_fabric::Poisoned;

use crate::sync::{AtomicBool, fence, yield_now};

/// Whether a PE copies memory that a peer has lent, on a line of its own.
#[repr(align(64))]
#[derive(Debug, Default)]
pub struct Accessing(AtomicBool);

/// The right to copy what is lent, until it is dropped.
#[derive(Debug)]
pub struct Access<'a>(&'a AtomicBool);

impl Accessing {
    /// Begins a copy. For the PE whose flag this is, one copy at a time.
    ///
    /// # Errors
    /// When the job has failed: then the lender may be gone.
    #[inline(always)]
    pub fn enter(&self, poisoned: &AtomicBool) -> Result<Access<'_>, Poisoned> {
        self.0.store(true, Relaxed);
        let access = Access(&self.0);
        fence(SeqCst); // pairs with the fence in `drain`
        if poisoned.load(Relaxed) { Err(Poisoned) } else { Ok(access) }
    }

    /// Waits until the PE copies nothing. For a lender that has seen poison, or spread it.
    #[cold]
    pub fn drain(&self) {
        fence(SeqCst); // pairs with the fence in `enter`
        while self.0.load(Acquire) {
            yield_now();
        }
    }
}

impl Drop for Access<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.store(false, Release); // pairs with the acquire in `drain`
    }
}
