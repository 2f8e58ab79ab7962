//! A thread's pending accesses, which overlap, and its stores, which wait for each other.

use std::{cell::Cell, cell::RefCell, collections::VecDeque};

use crate::{account::Cause, costs::Site, engine::Time};

/// Assumption: the largest number of pending stores. A thread that makes another store waits for
/// the first.
pub(super) const STORES: usize = 8;

/// A thread's own time, which runs ahead of the clock until it depends on other threads.
pub(super) struct Pace<'s> {
    pub(super) site: Site<'s>,
    pub(super) front: Time,
}

/// A pending access.
pub(super) struct Transfer {
    /// The bytes that the thread had worked on before it.
    at: f64,
    done: Time,
    queued: Time,
    cause: Cause,
}

/// The pending accesses and stores of a thread.
#[derive(Default)]
pub(super) struct Window {
    transfers: RefCell<VecDeque<Transfer>>,
    /// Bytes worked on so far.
    worked_bytes: Cell<f64>,
    /// When all accesses so far are complete.
    done: Cell<Time>,
    /// The times at which the latest stores become visible.
    stores: RefCell<VecDeque<Time>>,
}

/// The limits of a thread's pending accesses.
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

    /// Sleeps until the clock reaches the thread's time.
    pub(super) async fn settle(&self) {
        self.site.engine.sleep_until(self.front).await;
    }
}

impl Window {
    /// Waits until the thread may make another access.
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

    /// Makes an access that takes `time` after it has queued for `queued`.
    pub(super) fn launch(&self, front: Time, cause: Cause, time: Time, queued: Time) {
        let done = (front + queued + time).max(self.done.get());
        self.done.set(done);
        let at = self.worked_bytes.get();
        self.transfers.borrow_mut().push_back(Transfer { at, done, queued, cause });
    }

    /// Adds bytes that the thread has worked on.
    pub(super) fn work(&self, bytes: f64) {
        self.worked_bytes.set(self.worked_bytes.get() + bytes);
    }

    /// Returns when all accesses so far are complete.
    pub(super) fn done(&self) -> Time {
        self.done.get()
    }

    /// Makes a store that follows all accesses and stores so far. Returns when it is visible.
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

    /// Returns when all stores so far are visible.
    pub(super) fn stored(&self) -> Time {
        self.stores.borrow().back().copied().unwrap_or(0)
    }
}
