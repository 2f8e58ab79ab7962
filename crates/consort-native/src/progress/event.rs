//! Waits of threads that do not drive a call: for a word, a region or a barrier.
//!
//! A thread polls, yields for as long as its budget lasts, and then sleeps at a parker until
//! another thread makes its condition true and wakes it. A PE in a call waits in
//! `endpoint::backoff`, which does the same and also makes progress.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use consort_machine::{
    sync::futex::Scope,
    wait::{
        parker::Parker,
        sleepers::{Sleeper, Sleepers},
        spin_budget::{POLLS_PER_YIELD, SLEEP, SpinBudget, Yields},
    },
};

/// A place where threads wait and are woken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParkingSlot<'p> {
    pub(crate) parker: &'p Parker,
    pub(crate) sleepers: &'p Sleepers,
    /// Whether wakers fence, instead of sleepers.
    pub(crate) senders_fence: bool,
    pub(crate) scope: Scope,
}

impl<'p> ParkingSlot<'p> {
    /// Announces that the calling thread is about to sleep here.
    pub(crate) fn announce(&self) -> Sleeper<'p> {
        self.sleepers.announce(self.parker, self.senders_fence, self.scope)
    }

    /// Waits until `test` returns `Some`, or for at most `limit`. Also returns the budget for the
    /// next wait.
    pub(crate) fn wait<T>(
        &self,
        budget: SpinBudget,
        limit: Option<Duration>,
        test: impl Fn() -> Option<T>,
    ) -> (Option<T>, SpinBudget) {
        self.wait_entering(budget, limit, test, || ())
    }

    /// As [`Self::wait`]. Calls `enter` before each sleep, and drops its result after it.
    fn wait_entering<T, S>(
        &self,
        budget: SpinBudget,
        limit: Option<Duration>,
        test: impl Fn() -> Option<T>,
        enter: impl Fn() -> S,
    ) -> (Option<T>, SpinBudget) {
        let mut yields = Yields::new(budget);
        loop {
            let waited = yields.waited();
            let left = limit.map_or(SLEEP, |limit| limit.saturating_sub(waited));
            if left.is_zero() {
                return (None, yields.next_budget());
            }
            if yields.are_over(waited) {
                let _entered = enter();
                let sleeper = self.announce();
                if let Some(value) = test() {
                    return (Some(value), yields.next_budget());
                }
                yields.note_sleep();
                sleeper.sleep(left.min(SLEEP));
            } else {
                yields.yield_now();
            }
            let found = poll(budget.polls().min(POLLS_PER_YIELD), &test);
            if found.is_some() {
                return (found, yields.next_budget());
            }
        }
    }
}

/// Calls `test` up to `times` times, until it returns `Some`.
#[inline(always)]
pub(crate) fn poll<T>(times: u32, test: impl Fn() -> Option<T>) -> Option<T> {
    (0..times).find_map(|_| {
        let found = test();
        if found.is_none() {
            spin_loop();
        }
        found
    })
}

/// An event: threads of this process wait until a condition holds, and a thread that makes it true
/// notifies them.
#[derive(Debug)]
pub struct Event {
    parker: Parker,
    sleepers: Sleepers,
    fits: bool,
    /// The budget of the next wait, encoded in a word.
    budget: AtomicU64,
}

impl Event {
    /// Creates an event for threads. `fits` means that each thread can have a separate core.
    #[must_use]
    pub fn new(fits: bool) -> Self {
        let sleepers = Sleepers::default();
        if !fits {
            sleepers.let_senders_fence();
        }
        Self {
            parker: Parker::default(),
            sleepers,
            fits,
            budget: AtomicU64::new(SpinBudget::new(fits).word()),
        }
    }

    /// Notifies all threads that wait for the event. Must be called after the store that they wait
    /// for.
    #[inline]
    pub fn notify(&self) {
        if self.may_have_sleepers() {
            self.parker.wake(Scope::Process);
        }
    }

    /// Returns whether [`Event::notify`] may have to wake a thread. Must be called after the store
    /// that threads wait for.
    #[inline]
    pub fn may_have_sleepers(&self) -> bool {
        self.sleepers.any()
    }

    /// Waits until `test` returns `Some`. Calls `then` at the end of a wait in which other threads may
    /// have run here.
    #[inline]
    pub fn wait_then<T>(&self, test: impl Fn() -> Option<T>, then: impl FnOnce()) -> T {
        let budget = self.budget();
        let found = poll(budget.polls(), &test).or_else(|| {
            let found = self.wait_long(budget, None, test, || ());
            then();
            found
        });
        found.expect("a wait without a limit ends when its test does")
    }

    /// Waits until `test` returns `Some`, or for at most `limit`. Calls `enter` before each sleep,
    /// and drops its result after it.
    #[inline]
    pub fn wait_entering<T, S>(
        &self,
        limit: Option<Duration>,
        test: impl Fn() -> Option<T>,
        enter: impl Fn() -> S,
    ) -> Option<T> {
        let budget = self.budget();
        let found = poll(budget.polls(), &test);
        found.or_else(|| self.wait_long(budget, limit, test, enter))
    }

    #[inline]
    fn budget(&self) -> SpinBudget {
        SpinBudget::of_word(self.fits, self.budget.load(Relaxed))
    }

    #[cold]
    fn wait_long<T, S>(
        &self,
        budget: SpinBudget,
        limit: Option<Duration>,
        test: impl Fn() -> Option<T>,
        enter: impl Fn() -> S,
    ) -> Option<T> {
        let Self { parker, sleepers, fits, .. } = self;
        let place = ParkingSlot { parker, sleepers, senders_fence: !fits, scope: Scope::Process };
        let (value, next) = place.wait_entering(budget, limit, test, enter);
        self.budget.store(next.word(), Relaxed);
        value
    }
}
