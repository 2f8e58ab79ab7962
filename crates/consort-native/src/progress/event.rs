//! An event: threads wait until something is so, and whoever makes it so notifies them.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU8, Ordering::Relaxed},
    time::Duration,
};

use super::patience::{Patience, Yields};
use crate::{
    state::{parker::Parker, sleepers::Sleepers},
    sync::futex::Scope,
};

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

    /// Waits until `test` returns `Some`: polls, yields, then sleeps.
    #[inline]
    pub fn wait<T>(&self, test: impl Fn() -> Option<T>) -> T {
        let patience = Patience::new(self.fits).at(self.level.load(Relaxed));
        for _ in 0..patience.polls() {
            if let Some(value) = test() {
                return value;
            }
            spin_loop();
        }
        let mut slept = false;
        let value = self.wait_long(patience, &mut slept, test);
        self.level.store(patience.after(slept).level(), Relaxed);
        value
    }

    #[cold]
    fn wait_long<T>(
        &self,
        patience: Patience,
        slept: &mut bool,
        test: impl Fn() -> Option<T>,
    ) -> T {
        let mut yields = Yields::new(patience);
        loop {
            if yields.are_over(yields.waited()) {
                let sleeper = self.sleepers.announce(&self.parker, !self.fits);
                if let Some(value) = test() {
                    return value;
                }
                *slept = true;
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
