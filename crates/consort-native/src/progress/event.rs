//! An event: threads wait until something is so, and whoever makes it so notifies them.

use std::{hint::spin_loop, time::Duration};

use super::patience::{Patience, Yields};
use crate::{
    state::{parker::Parker, sleepers::Sleepers},
    sync::futex::Scope,
};

/// Polls before the first yield of a thread that has a core of its own: some tens of microseconds,
/// longer than any hot wait.
pub(crate) const SPINS: u32 = 20_000;
/// Polls between yields.
const POLLS_PER_YIELD: u32 = 100;
/// The longest sleep before a thread looks again.
const SLEEP: Duration = Duration::from_millis(20);

/// A place where threads of this process wait.
#[derive(Debug)]
pub struct Event {
    parker: Parker,
    sleepers: Sleepers,
    fits: bool,
}

impl Event {
    /// An event for threads of which each can have a core of its own if `fits`.
    #[must_use]
    pub fn new(fits: bool) -> Self {
        let sleepers = Sleepers::default();
        if !fits {
            sleepers.let_senders_fence();
        }
        Self { parker: Parker::default(), sleepers, fits }
    }

    /// Notifies all that wait here. To be called after the store that they wait for.
    #[inline]
    pub fn notify(&self) {
        if self.sleepers.are_there() {
            self.parker.wake(Scope::Process);
        }
    }

    /// Waits until `test` returns `Some`: polls, yields, then sleeps.
    #[inline]
    pub fn wait<T>(&self, test: impl Fn() -> Option<T>) -> T {
        for _ in 0..if self.fits { SPINS } else { 1 } {
            if let Some(value) = test() {
                return value;
            }
            spin_loop();
        }
        self.wait_long(test)
    }

    #[cold]
    fn wait_long<T>(&self, test: impl Fn() -> Option<T>) -> T {
        let mut yields = Yields::new(self.fits, Patience::default());
        loop {
            if yields.are_over(yields.waited()) {
                let sleeper = self.sleepers.announce(&self.parker, !self.fits);
                if let Some(value) = test() {
                    return value;
                }
                sleeper.sleep(SLEEP, Scope::Process);
            } else {
                yields.yield_now();
            }
            for _ in 0..if self.fits { POLLS_PER_YIELD } else { 1 } {
                if let Some(value) = test() {
                    return value;
                }
                spin_loop();
            }
        }
    }
}
