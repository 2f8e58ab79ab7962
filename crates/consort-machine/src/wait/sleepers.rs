//! The number of a job's threads that sleep at a parker, or are about to.
//!
//! A sender looks at this one word, which hardly ever changes, and at the parker of its receiver
//! only if somebody sleeps. The sender does not fence.
//!
//! | waiter | sender |
//! | --- | --- |
//! | counts itself here and at its parker | stores its message |
//! | makes all running threads fence (`sync::asymmetric`) | |
//! | checks for the message once more | checks for sleepers here |
//! | sleeps | if there are any: fences, and wakes those at the receiver's parker |
//!
//! Where PEs outnumber the cores, threads sleep so often that this would cost more than a fence for
//! each message. Then the word is never 0, so senders always fence.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use super::parker::{Epoch, Parker};
use crate::sync::{
    AtomicU32,
    asymmetric::{heavy, light},
    futex::Scope,
};

/// How long a thread sleeps if the system cannot fence for senders: a wake-up may then be lost.
const SLEEP_WITHOUT_FENCE: Duration = Duration::from_millis(1);

/// The word, on lines of its own.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Sleepers(AtomicU32);

/// A thread that is about to sleep, until this is dropped. Its parker counts it.
#[derive(Debug)]
pub struct Sleeper<'s> {
    sleepers: &'s Sleepers,
    parker: &'s Parker,
    epoch: Epoch,
    scope: Scope,
    /// Whether no wake-up can be lost.
    is_sure: bool,
}

impl Sleepers {
    /// Nobody sleeps.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Lets senders fence for each message. For the thread that makes the job, before any sleeps.
    pub fn let_senders_fence(&self) {
        self.0.store(1, Relaxed);
    }

    /// Announces that the calling thread is about to sleep at `parker`. The thread must then check
    /// once more for its message. `senders_fence` says whether [`Self::let_senders_fence`] was
    /// called; `scope`, where the senders are.
    pub fn announce<'s>(
        &'s self,
        parker: &'s Parker,
        senders_fence: bool,
        scope: Scope,
    ) -> Sleeper<'s> {
        self.0.fetch_add(1, Relaxed);
        // The fence of `heavy` is the only one, so that models notice if it comes too early.
        let epoch = if senders_fence { parker.prepare() } else { parker.count() };
        let is_sure = senders_fence || heavy(scope);
        Sleeper { sleepers: self, parker, epoch, scope, is_sure }
    }

    /// Whether the receiver of a message may sleep, and its parker must be woken. To be called
    /// after the message is stored.
    #[inline(always)]
    pub fn are_there(&self) -> bool {
        light(); // pairs with the fence in `announce`
        self.0.load(Relaxed) != 0
    }
}

impl Sleeper<'_> {
    /// Sleeps until woken, or for about `limit`.
    pub fn sleep(self, limit: Duration) {
        let limit = if self.is_sure { limit } else { limit.min(SLEEP_WITHOUT_FENCE) };
        self.parker.sleep(self.epoch, limit, self.scope);
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.parker.cancel(self.epoch); // in a later epoch this changes nothing
        self.sleepers.0.fetch_sub(1, Relaxed);
    }
}
