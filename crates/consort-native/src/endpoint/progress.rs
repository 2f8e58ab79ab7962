//! What a PE does for its nonblocking calls, and for its peers, between its own.

#![expect(unsafe_code, reason = "declares what its callers must see to")]

use std::{
    future::Future,
    panic::resume_unwind,
    pin::Pin,
    rc::Rc,
    sync::atomic::{Ordering::SeqCst, fence},
    time::Instant,
};

use consort_fabric::{Op, Poisoned};

use super::{LOOK_AROUND, identity::Endpoint};
use crate::tally::Tally;

/// Visits to the library between looks at the clock, outside of waits.
const VISITS_PER_GLANCE: u32 = 16;

impl Endpoint {
    /// Has a future driven whenever this PE waits or asks for progress, or by its helper; it counts
    /// among `also` until it is gone.
    ///
    /// # Safety
    /// It may be polled and dropped on any thread, and what it borrows lives until it is gone: when
    /// it was found ready, and at the latest after `Engine::clear`.
    pub unsafe fn launch<'f>(
        &self,
        operation: Pin<Box<dyn Future<Output = ()> + 'f>>,
        also: Option<&Tally>,
    ) {
        // SAFETY: the caller's promise is the engine's condition.
        unsafe { self.pe.engine.launch(operation, also) };
    }

    /// Moves operations on, and now and then compares calls with the peers'. For a PE that
    /// is in no call.
    ///
    /// # Panics
    /// When an operator does; the job has failed then.
    pub fn progress(&self) {
        self.poll_operations();
        let visits = self.visits.get().wrapping_add(1);
        self.visits.set(visits);
        if !visits.is_multiple_of(VISITS_PER_GLANCE) {
            return; // looking at the clock takes as long as a visit
        }
        let now = Instant::now();
        let since = self.glanced.get().unwrap_or(now);
        let is_due = now - since >= LOOK_AROUND;
        self.glanced.set(Some(if is_due { now } else { since }));
        if is_due && self.pending_calls.first().is_some() && !self.job.is_poisoned() {
            self.check_peers();
        }
    }

    /// Polls all operations once, unless the helper does; says whether it did.
    pub(super) fn poll_operations(&self) -> bool {
        self.pe.engine.poll().unwrap_or_else(|panic| {
            self.job.fail(self.pe.rank, &panic);
            resume_unwind(panic)
        })
    }

    /// Gives a credit once all calls so far are complete.
    pub fn owe(&self, credit: u64) {
        let give = |credit| self.group().give_credit(credit);
        self.pending_calls.owe(self.calls.get(), credit, give);
    }

    /// Waits until this PE's calls before number `end` are complete.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn await_own(&self, end: u64) -> Op {
        while let Some(first) = self.pending_calls.first().filter(|&first| first < end) {
            self.block_until(first, || {
                self.pending_calls.first().is_none_or(|now| now > first).then_some(())
            })?;
        }
        Ok(())
    }

    /// The first of this PE's nonblocking calls that is under way.
    pub fn first_under_way(&self) -> Option<u64> {
        self.pending_calls.first()
    }

    /// Has `callback` run now and then while this PE waits in a call, whatever it waits for, until
    /// it is dropped. It makes no calls and does not wait.
    pub fn add_progress_callback(&self, callback: &Rc<dyn Fn()>) {
        let mut callbacks = self.pe.callbacks.borrow_mut();
        callbacks.retain(|callback| callback.strong_count() > 0);
        callbacks.push(Rc::downgrade(callback));
    }

    /// Compares this PE's last calls with the peers'.
    pub(super) fn check_peers(&self) {
        self.group().check_peers(self.calls.get(), self.sequence.get());
    }

    /// Says that this PE makes no more calls in this team. Peers that wait for one then fail.
    ///
    /// # Errors
    /// When this PE is the first to see that calls have not matched, or that a peer that has
    /// finished made fewer or more.
    pub fn finish(&self) -> Op {
        if self.job.is_poisoned() {
            return Ok(()); // the program knows
        }
        self.group().finish(self.sequence.get());
        fence(SeqCst); // of two PEs that finish, one sees the other
        self.check_peers();
        self.group().check_finished(self.sequence.get());
        if self.job.is_poisoned() { Err(Poisoned) } else { Ok(()) }
    }
}
