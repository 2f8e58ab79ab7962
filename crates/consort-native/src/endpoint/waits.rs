//! Waits of a PE: the executor polls in place, then pauses.

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    hint::spin_loop,
    task::Poll,
    time::Duration,
};

use consort_fabric::{Op, Poisoned, Until};

use super::{backoff::Backoff, identity::Endpoint};
use crate::{
    call::view::CallView,
    heap::word::{HeapWord, Width},
};
use consort_machine::{
    system::clock::now_ns,
    wait::executor::{Idle, Watch, block_on},
};

/// There is no word to watch: the executor polls continuously.
struct Unwatched;

impl Watch for Unwatched {
    fn spin(&self, _: &mut u32) {}
}

/// A word of a heap that a PE waits for.
struct AwaitedWord<'j> {
    word: HeapWord<'j>,
    until: Until,
}

impl AwaitedWord<'_> {
    /// Returns the word's value, if it satisfies the condition.
    #[inline(always)]
    fn test(&self) -> Option<u64> {
        Some(self.word.load()).filter(|&value| self.until.holds(value))
    }
}

impl Watch for AwaitedWord<'_> {
    /// Executes a pause instruction of the processor before each look.
    #[inline(always)]
    fn spin(&self, left: &mut u32) {
        spin_loop();
        while *left > 0 && self.test().is_none() {
            *left -= 1;
            spin_loop();
        }
    }
}

/// Adds up the time in which a wait spins and pauses.
struct Timed<'t, T> {
    wait: T,
    waiting_ns: &'t Cell<u64>,
}

impl<T> Timed<'_, T> {
    fn time<R>(waiting_ns: &Cell<u64>, wait: impl FnOnce() -> R) -> R {
        let begun_ns = now_ns();
        let waited = wait();
        waiting_ns.set(waiting_ns.get() + now_ns().saturating_sub(begun_ns));
        waited
    }
}

impl<W: Watch> Watch for Timed<'_, &W> {
    fn spin(&self, left: &mut u32) {
        Self::time(self.waiting_ns, || self.wait.spin(left));
    }
}

impl Idle for Timed<'_, Backoff<'_>> {
    fn pause(&mut self) -> u32 {
        Self::time(self.waiting_ns, || self.wait.pause())
    }
}

/// The pauses of a blocking call. They are compiled once, for the futures of all algorithms.
struct PausesOfCall<'e> {
    endpoint: &'e Endpoint,
    call: &'e CallView<'e>,
    backoff: Option<Backoff<'e>>,
}

impl Idle for PausesOfCall<'_> {
    #[cold]
    fn pause(&mut self) -> u32 {
        let Self { endpoint, call, backoff } = self;
        backoff.get_or_insert_with(|| endpoint.backoff_in(call)).pause()
    }
}

impl Endpoint {
    /// Returns the pauses of a wait in `call`, the last call that has begun.
    fn backoff_in<'e>(&'e self, call: &'e CallView<'_>) -> Backoff<'e> {
        Backoff::new(self, self.calls.get().checked_sub(1)).in_call(call)
    }

    /// Waits until `test` returns `Some` because of progress of the PE's operations up to call
    /// `number`. Returns `None` after `limit`.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn block_until<T>(
        &self,
        number: u64,
        limit: Option<Duration>,
        test: impl Fn() -> Option<T>,
    ) -> Op<Option<T>> {
        let is_over = Cell::new(false);
        let future = self.test_or_over(&is_over, test);
        let backoff = || Backoff::new(self, Some(number)).for_operations().within(limit, &is_over);
        block_on(future, &Unwatched, || 1, backoff)
    }

    /// Waits until a word of this PE's heap satisfies `until`, and returns it. Returns `None` after
    /// `limit`. As in every wait of the PE, operations and callbacks make progress.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn wait_until(
        &self,
        word: usize,
        width: Width,
        until: Until,
        limit: Option<Duration>,
    ) -> Op<Option<u64>> {
        let awaited = AwaitedWord { word: self.one_sided().own_word(word, width), until };
        let is_over = Cell::new(false);
        let future = self.test_or_over(&is_over, || awaited.test());
        let backoff = || Backoff::new(self, None).for_word().within(limit, &is_over);
        block_on(future, &awaited, || self.polls(), backoff)
    }

    /// Sets how long a wait may last, from now on, before it fails the job. Returns the previous
    /// limit.
    pub fn limit_waits(&self, limit: Option<Duration>) -> Option<Duration> {
        self.pe.limit.replace(limit)
    }

    /// Returns a future that is ready with the result of `test` once that is `Some`, or with `None`
    /// once the wait `is_over`. It fails if the job has failed.
    #[inline(always)]
    fn test_or_over<T>(
        &self,
        is_over: &Cell<bool>,
        test: impl Fn() -> Option<T>,
    ) -> impl Future<Output = Op<Option<T>>> {
        poll_fn(move |_| match test() {
            None if self.job.is_poisoned() => Poll::Ready(Err(Poisoned)),
            None if !is_over.get() => Poll::Pending,
            found => Poll::Ready(Ok(found)),
        })
    }

    /// Polls `future` in place until it is ready, with the launch's waiting policy. The future
    /// drives `call`, the last call that has begun.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline(always)]
    pub fn block_on(&self, call: &CallView<'_>, future: impl Future<Output = Op>) -> Op {
        let pauses = || PausesOfCall { endpoint: self, call, backoff: None };
        block_on(future, call, || self.polls(), pauses)
    }

    /// Like [`Endpoint::block_on`], for a profile: adds the time in which the call could not go on
    /// to `waiting_ns`.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn block_on_timed<T>(
        &self,
        call: &CallView<'_>,
        future: impl Future<Output = Op<T>>,
        waiting_ns: &Cell<u64>,
    ) -> Op<T> {
        let idle = || Timed { wait: self.backoff_in(call), waiting_ns };
        block_on(future, &Timed { wait: call, waiting_ns }, || self.polls(), idle)
    }

    /// Like [`Endpoint::block_on`], for a view outside of any collective call that awaits credits.
    /// `until` is the call that it waits for all PEs to leave, if any.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline]
    pub fn block_on_view<T>(
        &self,
        view: &CallView<'_>,
        until: Option<u64>,
        future: impl Future<Output = Op<T>>,
    ) -> Op<T> {
        block_on(future, view, || self.polls(), || Backoff::new(self, until).for_credits())
    }

    /// Like [`Endpoint::block_on`], for a future on
    /// [`NotificationBuffers`](crate::NotificationBuffers). `call` is the number of the call that
    /// the future is in, if any.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn block_on_notifications<T>(
        &self,
        call: Option<u64>,
        future: impl Future<Output = Op<T>>,
    ) -> Op<T> {
        block_on(future, &Unwatched, || self.polls(), || Backoff::new(self, call))
    }
}
