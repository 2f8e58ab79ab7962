//! What a thread has under way: accesses that overlap, and stores that wait their turn.

use std::{cell::Cell, cell::RefCell, collections::VecDeque};

use crate::{account::Cause, costs::Site, engine::Time};

/// Assumption: stores that may wait to be seen by others; who makes more waits for the first.
pub(super) const STORES: usize = 8;

/// A thread's time, which runs ahead of the clock until it must know what others have done.
pub(super) struct Pace<'s> {
    pub(super) site: Site<'s>,
    pub(super) front: Time,
}

/// An access on its way.
pub(super) struct Transfer {
    /// How many bytes the thread had worked on before it.
    at: f64,
    done: Time,
    queued: Time,
    cause: Cause,
}

/// What a thread has under way.
#[derive(Default)]
pub(super) struct Window {
    transfers: RefCell<VecDeque<Transfer>>,
    /// Bytes worked on so far.
    worked_bytes: Cell<f64>,
    /// When all accesses so far are done.
    done: Cell<Time>,
    /// When each of the latest stores is seen.
    stores: RefCell<VecDeque<Time>>,
}

/// How much a thread has under way at most.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) lines: usize,
    pub(super) bytes: f64,
}

impl<'s> Pace<'s> {
    pub(super) fn new(site: Site<'s>) -> Self {
        Self { site, front: site.engine.now() }
    }

    pub(super) fn spend(&mut self, cause: Cause, time: Time) {
        self.site.account.spend(cause, time);
        self.front += time;
    }

    /// The clock comes up with the thread.
    pub(super) async fn settle(&self) {
        self.site.engine.sleep_until(self.front).await;
    }
}

impl Window {
    /// The thread waits until it may make another access.
    pub(super) fn admit(&self, pace: &mut Pace<'_>, limits: Limits) {
        let mut transfers = self.transfers.borrow_mut();
        while let Some(first) = transfers.front() {
            let full = transfers.len() >= limits.lines;
            let far = first.at + limits.bytes <= self.worked_bytes.get();
            if !full && !far && first.done > pace.front {
                break;
            }
            let stalled = first.done.saturating_sub(pace.front);
            let queued = first.queued.min(stalled);
            pace.spend(Cause::Contention, queued);
            pace.spend(first.cause, stalled - queued);
            transfers.pop_front();
        }
    }

    /// The thread makes an access that is done so much later, of which it queues for some time.
    pub(super) fn launch(&self, front: Time, cause: Cause, time: Time, queued: Time) {
        let done = (front + queued + time).max(self.done.get());
        self.done.set(done);
        let at = self.worked_bytes.get();
        self.transfers.borrow_mut().push_back(Transfer { at, done, queued, cause });
    }

    /// The thread has worked on so many bytes.
    pub(super) fn work(&self, bytes: f64) {
        self.worked_bytes.set(self.worked_bytes.get() + bytes);
    }

    /// When all accesses so far are done.
    pub(super) fn done(&self) -> Time {
        self.done.get()
    }

    /// Has a store follow all accesses and stores so far. Returns when it is seen.
    pub(super) fn store(&self, pace: &mut Pace<'_>, time: Time) -> Time {
        let mut stores = self.stores.borrow_mut();
        if stores.len() >= STORES {
            let first = stores.pop_front().unwrap_or(0);
            let stalled = first.saturating_sub(pace.front);
            pace.spend(Cause::Flags, stalled);
        }
        let before = stores.back().copied().unwrap_or(0);
        let seen = pace.front.max(self.done.get()).max(before) + time;
        stores.push_back(seen);
        seen
    }

    /// Stores so far are seen no earlier than this.
    pub(super) fn stored(&self) -> Time {
        self.stores.borrow().back().copied().unwrap_or(0)
    }
}
