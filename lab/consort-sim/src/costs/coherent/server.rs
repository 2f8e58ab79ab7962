//! A queue in which requests wait for a resource.

use std::cell::Cell;

use crate::engine::Time;

/// A resource that serves one request after the other.
#[derive(Default)]
pub(super) struct Server {
    free: Cell<Time>,
}

impl Server {
    /// Serves a request that arrives now and takes `time`. Returns how long it waits before that.
    pub(super) fn take(&self, now: Time, time: Time) -> Time {
        let begins = now.max(self.free.get());
        self.free.set(begins + time);
        begins - now
    }
}
