//! Waits of threads that do not drive a call: for a word, a region or a barrier.
//!
//! A thread polls, yields for as long as its budget lasts, and then sleeps at a parker until
//! another thread makes its condition true and wakes it. A PE in a call waits in
//! `endpoint::backoff`, which does the same and also makes progress.

use std::{
    hint::spin_loop,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use consort_machine::{
    sync::futex::Scope,
    usage,
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
    /// The number of threads that may sleep here or at the other parkers of `sleepers`.
    pub(crate) threads: u32,
}

impl<'p> ParkingSlot<'p> {
    /// Announces that the calling thread is about to sleep here.
    pub(crate) fn announce(&self) -> Sleeper<'p> {
        self.sleepers.announce(self.parker, self.senders_fence, self.scope)
    }

    /// Returns whether other threads may compete with those that are awake.
    #[cold]
    pub(crate) fn has_competitors(&self) -> bool {
        let asleep = self.sleepers.count() - u32::from(self.senders_fence);
        usage::others_compete(self.threads.saturating_sub(asleep))
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
            if yields.are_over(waited, || self.has_competitors()) {
                let _entered = enter();
                let sleeper = self.announce();
                if let Some(value) = test() {
                    return (Some(value), yields.next_budget());
                }
                yields.note_sleep();
                sleeper.sleep(left.min(SLEEP));
            } else {
                yields.yield_now(|| self.has_competitors());
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
    sleepers: Arc<Sleepers>,
    /// The number of threads that wait here or make others wait.
    threads: u32,
    /// The number of processors that they can use.
    processors: u32,
    /// The budget of the next wait, encoded in a word.
    budget: AtomicU64,
}

impl Event {
    /// Creates an event for a number of threads, which wait for each other and can use this many
    /// processors.
    #[must_use]
    pub fn new(threads: u32, processors: u32) -> Self {
        let sleepers = Sleepers::default();
        if threads > processors {
            sleepers.let_senders_fence();
        }
        Self::with(Arc::new(sleepers), threads, processors)
    }

    /// Creates another event for the same threads, so that each event knows how many of them sleep.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self::with(Arc::clone(&self.sleepers), self.threads, self.processors)
    }

    fn with(sleepers: Arc<Sleepers>, threads: u32, processors: u32) -> Self {
        let budget = AtomicU64::new(SpinBudget::new(threads <= processors).word());
        Self { parker: Parker::default(), sleepers, threads, processors, budget }
    }

    /// Returns whether each thread can have a separate processor.
    fn fits(&self) -> bool {
        self.threads <= self.processors
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

    /// Waits until `test` returns `Some`. Calls `then` at the end of a wait in which other threads
    /// may have run here.
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
        SpinBudget::of_word(self.fits(), self.budget.load(Relaxed))
    }

    #[cold]
    fn wait_long<T, S>(
        &self,
        budget: SpinBudget,
        limit: Option<Duration>,
        test: impl Fn() -> Option<T>,
        enter: impl Fn() -> S,
    ) -> Option<T> {
        let (senders_fence, scope) = (!self.fits(), Scope::Process);
        let Self { parker, sleepers, threads, .. } = self;
        let place = ParkingSlot { parker, sleepers, senders_fence, scope, threads: *threads };
        let (value, next) = place.wait_entering(budget, limit, test, enter);
        self.budget.store(next.word(), Relaxed);
        value
    }
}

#[cfg(all(test, target_os = "linux", not(any(loom, miri, consort_portable))))]
mod tests {
    use std::{sync::atomic::AtomicBool, thread};

    use consort_machine::affinity::{self, Pinned};

    use super::*;

    /// A thread waits on the processor of one that computes.
    #[test]
    fn long_yield_counts_only_if_others_compete() {
        let cpu = affinity::allowed()[0];
        let is_over = AtomicBool::new(false);
        // Returns the budget for the next wait without its level: sleeps change that too.
        let budget_after = |threads| {
            let (parker, sleepers) = (Parker::default(), Sleepers::default());
            let (senders_fence, scope) = (false, Scope::Process);
            let (parker, sleepers) = (&parker, &sleepers);
            let place = ParkingSlot { parker, sleepers, senders_fence, scope, threads };
            let limit = Some(Duration::from_millis(50));
            place.wait(SpinBudget::new(false), limit, || None::<()>).1.word() >> 8
        };
        let [competing, alone] = thread::scope(|scope| {
            scope.spawn(|| {
                let _pinned = Pinned::new(cpu).expect("an allowed processor");
                while !is_over.load(Relaxed) {
                    spin_loop();
                }
            });
            let waiter = scope.spawn(|| {
                let _pinned = Pinned::new(cpu).expect("an allowed processor");
                let found = [0, u32::MAX].map(budget_after);
                is_over.store(true, Relaxed);
                found
            });
            waiter.join().expect("no panic")
        });
        assert_ne!(competing, 0, "the computing thread is not a peer");
        if usage::others_compete(u32::MAX) {
            return; // the system does not say how many threads run
        }
        assert_eq!(alone, 0, "all threads of the system may be peers");
    }
}
