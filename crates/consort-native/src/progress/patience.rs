//! How long a wait yields before its thread sleeps.
//!
//! A thread with a core of its own sleeps after some time, or at once when its yields let other
//! threads run: then it does not have the core. Where threads outnumber the cores, a yield lets
//! another one go on, so a thread sleeps only after many.

use std::{
    thread,
    time::{Duration, Instant},
};

/// The time after which a thread with a core of its own sleeps, at least and at most.
const TIME: [Duration; 2] = [Duration::from_micros(64), Duration::from_millis(1)];

/// A yield of this length has let another thread run.
const CONTENDED: Duration = Duration::from_micros(3);

/// Yields to other threads before a thread sleeps that should have a core of its own.
const CONTENDED_YIELDS: u32 = 4;

/// Yields before a thread sleeps where threads outnumber the cores.
const YIELDS: u32 = 2_000;

/// The time after which the next wait sleeps, as earlier waits have shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience(Duration);

impl Default for Patience {
    fn default() -> Self {
        let [_, most] = TIME;
        Self(most)
    }
}

/// The yields of one wait.
#[derive(Debug)]
pub(crate) struct Yields {
    /// Whether each thread can have a core of its own.
    fits: bool,
    patience: Patience,
    begun: Instant,
    yields: u32,
    contended: u32,
}

impl Patience {
    /// The patience after a wait. A thread that has slept might have slept sooner; one that has
    /// only yielded might have yielded for longer.
    pub(crate) fn after(self, slept: bool) -> Self {
        let [least, most] = TIME;
        Self(if slept { self.0 / 2 } else { self.0 * 2 }.clamp(least, most))
    }
}

impl Yields {
    /// The yields of a wait that begins.
    pub(crate) fn new(fits: bool, patience: Patience) -> Self {
        Self { fits, patience, begun: Instant::now(), yields: 0, contended: 0 }
    }

    /// How long the wait has lasted.
    pub(crate) fn waited(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether it is time to sleep, after so long a wait.
    pub(crate) fn are_over(&self, waited: Duration) -> bool {
        if self.fits {
            self.contended >= CONTENDED_YIELDS || waited >= self.patience.0
        } else {
            self.yields >= YIELDS
        }
    }

    /// Yields the core once.
    pub(crate) fn yield_now(&mut self) {
        let begun = Instant::now();
        thread::yield_now();
        self.contended += u32::from(begun.elapsed() >= CONTENDED);
        self.yields += 1;
    }
}
