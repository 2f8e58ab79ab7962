//! Waits of a PE: the executor polls in place, then pauses.

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    hint::spin_loop,
    task::Poll,
    time::Duration,
};

use consort_fabric::{Op, Poisoned, Until};

use super::{
    POLLS_PER_PROGRESS,
    identity::{Endpoint, Pe},
    pauses::Pauses,
};
use crate::{
    call::view::Call,
    heap::word::{HeapWord, Width},
};
use consort_machine::wait::executor::{Watch, block_on};

/// Nothing to watch: the executor polls without a break.
struct Unwatched;

impl Watch for Unwatched {
    fn spin(&self, _: &mut u32) {}
}

/// A word of a heap, for which a PE waits.
struct Awaited<'j> {
    word: HeapWord<'j>,
    until: Until,
}

impl Awaited<'_> {
    /// The word's value, if it is as awaited.
    #[inline(always)]
    fn test(&self) -> Option<u64> {
        Some(self.word.load()).filter(|&value| self.until.holds(value))
    }
}

impl Watch for Awaited<'_> {
    /// With a pause of the processor before each look.
    #[inline(always)]
    fn spin(&self, left: &mut u32) {
        spin_loop();
        while *left > 0 && self.test().is_none() {
            *left -= 1;
            spin_loop();
        }
    }
}

impl Endpoint {
    /// Waits until `test` returns `Some`, which the PE's operations bring about, up to call
    /// `number`; or for `limit`, and then returns `None`.
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
        let future = self.sound_or_over(&is_over, test);
        let pauses = || Pauses::new(self, Some(number)).for_operations().within(limit, &is_over);
        block_on(future, &Unwatched, || 1, pauses)
    }

    /// Polls before the first pause of a wait: few if there are operations, since a pause polls
    /// them.
    #[inline(always)]
    pub(super) fn polls(&self) -> u32 {
        let Pe { engine, patience, .. } = &*self.pe;
        let polls = patience.get().polls();
        match () {
            () if engine.is_idle() => polls,
            () if self.job.far().is_some() => 0, // the first pause sends
            () => POLLS_PER_PROGRESS.min(polls),
        }
    }

    /// Waits until a word of this PE's own heap satisfies `until`, and returns it; or for `limit`,
    /// and then returns `None`. Operations and callbacks make progress meanwhile, as in every wait
    /// of the PE.
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
        let awaited = Awaited { word: self.one_sided().own_word(word, width), until };
        let is_over = Cell::new(false);
        let future = self.sound_or_over(&is_over, || awaited.test());
        let pauses = || Pauses::new(self, None).for_word().within(limit, &is_over);
        block_on(future, &awaited, || self.polls(), pauses)
    }

    /// The longest time that a wait may last before it fails the job, from now on; returns the
    /// previous one.
    pub fn limit_waits(&self, limit: Option<Duration>) -> Option<Duration> {
        self.pe.limit.replace(limit)
    }

    /// Ready when `test` returns `Some`, and with `None` once the wait `is_over`; fails when the
    /// job has failed.
    #[inline(always)]
    fn sound_or_over<T>(
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
    /// drives `call`, the last call that was begun.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline(always)]
    pub fn block_on<T>(&self, call: &Call<'_>, future: impl Future<Output = Op<T>>) -> Op<T> {
        let pauses = || Pauses::new(self, self.calls.get().checked_sub(1)).in_call(call);
        block_on(future, call, || self.polls(), pauses)
    }

    /// As [`Endpoint::block_on`], for a view outside of any collective call, which awaits credits.
    /// `until` is the call that it waits for all PEs to leave, if any.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline]
    pub fn block_on_view<T>(
        &self,
        view: &Call<'_>,
        until: Option<u64>,
        future: impl Future<Output = Op<T>>,
    ) -> Op<T> {
        block_on(future, view, || self.polls(), || Pauses::new(self, until).for_credits())
    }

    /// As [`Endpoint::block_on`], for a future on
    /// [`NotificationBuffers`](crate::NotificationBuffers). `call` is the number of the call that
    /// it is in, if any.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn block_on_notifications<T>(
        &self,
        call: Option<u64>,
        future: impl Future<Output = Op<T>>,
    ) -> Op<T> {
        block_on(future, &Unwatched, || self.polls(), || Pauses::new(self, call))
    }
}
