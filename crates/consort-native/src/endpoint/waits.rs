//! How a PE waits: in place, by the executor, with pauses.

use std::{
    future::{Future, poll_fn},
    task::Poll,
};

use consort_fabric::{Op, Poisoned, Until};

use super::{
    POLLS_PER_PROGRESS,
    identity::{Endpoint, Pe},
    pauses::Pauses,
};
use crate::{
    call::view::Call,
    heap::word::Width,
    progress::executor::{Watch, block_on},
};

/// Nothing that the executor could watch.
struct Unwatched;

impl Watch for Unwatched {
    fn spin(&self, _: &mut u32) {}
}

/// The same, with a pause of the processor between looks.
struct Paced;

impl Watch for Paced {
    #[inline(always)]
    fn spin(&self, _: &mut u32) {
        std::hint::spin_loop();
    }
}

impl Endpoint {
    /// Waits until `test` gives something, which operations bring about, at last call `number`.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn block_until<T>(&self, number: u64, test: impl Fn() -> Option<T>) -> Op<T> {
        let pauses = || Pauses::for_own_calls(self, number);
        block_on(self.sound_until(test), &Unwatched, || 1, pauses)
    }

    /// Polls before the first pause of a wait: few if there are operations, which each pause polls.
    #[inline(always)]
    pub(super) fn polls(&self) -> u32 {
        let Pe { engine, spins, .. } = &*self.pe;
        if engine.is_idle() { *spins } else { POLLS_PER_PROGRESS.min(*spins) }
    }

    /// Waits until a word of this PE's own heap is as wanted, and returns it. Meanwhile it does
    /// what every wait of the PE does.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn wait_until(&self, word: usize, width: Width, until: Until) -> Op<u64> {
        let one_sided = self.one_sided();
        let future = self.sound_until(|| one_sided.test(word, width, until));
        block_on(future, &Paced, || self.polls(), || Pauses::new(self, true, None))
    }

    /// Ready when `test` gives something; fails when the job has.
    fn sound_until<T>(&self, test: impl Fn() -> Option<T>) -> impl Future<Output = Op<T>> {
        poll_fn(move |_| match test() {
            Some(value) => Poll::Ready(Ok(value)),
            None if self.job.is_poisoned() => Poll::Ready(Err(Poisoned)),
            None => Poll::Pending,
        })
    }

    /// Polls `future`, which drives `call`, in place until it is ready, waiting as the launch said.
    /// The call is the last that was begun.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline(always)]
    pub fn block_on<T>(&self, call: &Call<'_>, future: impl Future<Output = Op<T>>) -> Op<T> {
        let pauses = || Pauses::new(self, true, self.calls.get().checked_sub(1));
        block_on(future, call, || self.polls(), pauses)
    }

    /// As [`Endpoint::block_on`], for a view outside of any collective. It waits for all to have
    /// left the call `until`, if for a call at all.
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
        block_on(future, view, || self.polls(), || Pauses::new(self, true, until))
    }

    /// Polls `future`, which waits for words of its own, in place until it is ready. It yields as
    /// the launch said but never sleeps, since whoever writes a word does not know who waits for
    /// it.
    pub fn block_on_machine<T>(&self, future: impl Future<Output = T>) -> T {
        block_on(future, &Unwatched, || self.polls(), || Pauses::new(self, false, None))
    }

    /// As [`Endpoint::block_on`], for a future on a
    /// [`NotificationBuffers`](crate::NotificationBuffers), in a call of this number, if it is in
    /// one.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn block_on_notifications<T>(
        &self,
        call: Option<u64>,
        future: impl Future<Output = Op<T>>,
    ) -> Op<T> {
        block_on(future, &Unwatched, || self.polls(), || Pauses::new(self, true, call))
    }
}
