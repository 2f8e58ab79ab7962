//! Counts a job's threads that sleep at a parker or are about to.
//!
//! A sender checks this one word, which hardly ever changes. The sender checks the parker of the
//! receiver only if some thread sleeps. The sender does not fence.
//!
//! | waiter | sender |
//! | --- | --- |
//! | counts itself here and at its parker | stores its message |
//! | makes all running threads fence (`sync::asymmetric`) | |
//! | checks for the message once more | checks for sleepers here |
//! | sleeps | if there are any: fences, and wakes those at the receiver's parker |
//!
//! If PEs outnumber the cores, threads sleep so often that making all threads fence would cost more
//! than a fence for each message. Then the word is never 0, so senders always fence.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use super::parker::{Epoch, Parker};
use crate::sync::{
    AtomicU32,
    asymmetric::{heavy, light},
    futex::Scope,
};

/// The longest sleep if the system cannot fence on behalf of senders: a wake-up may then be lost.
const SLEEP_WITHOUT_FENCE: Duration = Duration::from_millis(1);

/// The counter. It has its own cache lines.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Sleepers(AtomicU32);

/// A thread that is about to sleep. It is counted, also at its parker, until this is dropped.
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
    /// Creates a counter of 0.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Makes senders fence for each message. The job's creator calls it before any thread sleeps.
    pub fn let_senders_fence(&self) {
        self.0.store(1, Relaxed);
    }

    /// Returns the number of threads that sleep or are about to, plus one if senders fence.
    pub fn count(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Announces that the calling thread is about to sleep at `parker`. The thread must then check
    /// once more for its message. `senders_fence` says whether [`Self::let_senders_fence`] was
    /// called, and `scope` says where the senders are.
    pub fn announce<'s>(
        &'s self,
        parker: &'s Parker,
        senders_fence: bool,
        scope: Scope,
    ) -> Sleeper<'s> {
        self.0.fetch_add(1, Relaxed);
        // `heavy` issues the only fence, so that models notice if it comes too early.
        let epoch = if senders_fence { parker.prepare() } else { parker.count() };
        let is_sure = senders_fence || heavy(scope);
        Sleeper { sleepers: self, parker, epoch, scope, is_sure }
    }

    /// Returns whether the receiver of a message may sleep, so that its parker must be woken. Call
    /// it after storing the message.
    #[inline(always)]
    pub fn any(&self) -> bool {
        light(); // pairs with the fence in `announce`
        self.0.load(Relaxed) != 0
    }
}

impl Sleeper<'_> {
    /// Sleeps until woken, for at most about `limit`.
    pub fn sleep(self, limit: Duration) {
        let limit = if self.is_sure { limit } else { limit.min(SLEEP_WITHOUT_FENCE) };
        self.parker.sleep(self.epoch, limit, self.scope);
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.parker.cancel(self.epoch); // in a later epoch this has no effect
        self.sleepers.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Models cannot see this, because each check fences there.
    #[test]
    fn senders_that_fence_go_to_the_parker_each_time() {
        let (sleepers, parker) = (Sleepers::default(), Parker::default());
        assert!(!sleepers.any());
        sleepers.let_senders_fence();
        assert!(sleepers.any());
        drop(sleepers.announce(&parker, true, Scope::Process));
        assert!(sleepers.any());
    }
}
