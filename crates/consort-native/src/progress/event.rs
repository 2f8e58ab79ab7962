//! Waits of threads that drive no call: for a word, a region or a barrier.
//!
//! A thread polls, yields for as long as its patience lasts, and then sleeps at a parker until
//! somebody makes true what it waits for, and wakes it. A PE in a call waits by
//! `endpoint::pauses`, which do the same and make progress besides.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU8, Ordering::Relaxed},
    time::Duration,
};

use super::patience::{Patience, Yields};
use crate::{
    state::{
        parker::Parker,
        sleepers::{Sleeper, Sleepers},
    },
    sync::futex::Scope,
};

/// Polls between yields.
const POLLS_PER_YIELD: u32 = 100;
/// The longest sleep before a thread looks again.
const SLEEP: Duration = Duration::from_millis(20);

/// Where threads wait, and who wakes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'p> {
    pub(crate) parker: &'p Parker,
    pub(crate) sleepers: &'p Sleepers,
    /// Whether those who wake fence, rather than those who sleep.
    pub(crate) senders_fence: bool,
    pub(crate) scope: Scope,
}

impl<'p> Place<'p> {
    /// Announces that the calling thread is about to sleep here.
    pub(crate) fn announce(&self) -> Sleeper<'p> {
        self.sleepers.announce(self.parker, self.senders_fence)
    }

    /// Waits until `test` returns `Some`, or for `limit`. Sets `slept` if it slept.
    pub(crate) fn wait<T>(
        &self,
        patience: Patience,
        limit: Option<Duration>,
        slept: &mut bool,
        test: impl Fn() -> Option<T>,
    ) -> Option<T> {
        let mut yields = Yields::new(patience);
        loop {
            let waited = yields.waited();
            let left = limit.map_or(SLEEP, |limit| limit.saturating_sub(waited));
            if left.is_zero() {
                return None;
            }
            if yields.are_over(waited) {
                let sleeper = self.announce();
                if let Some(value) = test() {
                    return Some(value);
                }
                *slept = true;
                sleeper.sleep(left.min(SLEEP), self.scope);
            } else {
                yields.yield_now();
            }
            if let Some(value) = poll(patience.polls().min(POLLS_PER_YIELD), &test) {
                return Some(value);
            }
        }
    }
}

/// Looks at most so often.
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

/// An event: threads of this process wait until something is so, and whoever makes it so notifies
/// them.
#[derive(Debug)]
pub struct Event {
    parker: Parker,
    sleepers: Sleepers,
    fits: bool,
    /// The level of the patience of the next wait.
    level: AtomicU8,
}

impl Event {
    /// An event for threads of which each can have a core of its own if `fits`.
    #[must_use]
    pub fn new(fits: bool) -> Self {
        let sleepers = Sleepers::default();
        if !fits {
            sleepers.let_senders_fence();
        }
        Self { parker: Parker::default(), sleepers, fits, level: AtomicU8::new(0) }
    }

    /// Notifies all that wait here. To be called after the store that they wait for.
    #[inline]
    pub fn notify(&self) {
        if self.sleepers.are_there() {
            self.parker.wake(Scope::Process);
        }
    }

    /// Waits until `test` returns `Some`.
    #[inline]
    pub fn wait<T>(&self, test: impl Fn() -> Option<T>) -> T {
        let patience = Patience::new(self.fits).at(self.level.load(Relaxed));
        poll(patience.polls(), &test).unwrap_or_else(|| self.wait_long(patience, test))
    }

    #[cold]
    fn wait_long<T>(&self, patience: Patience, test: impl Fn() -> Option<T>) -> T {
        let Self { parker, sleepers, fits, .. } = self;
        let place = Place { parker, sleepers, senders_fence: !fits, scope: Scope::Process };
        let mut slept = false;
        let value = place.wait(patience, None, &mut slept, test);
        self.level.store(patience.after(slept).level(), Relaxed);
        value.expect("a wait without a limit ends when its test does")
    }
}
