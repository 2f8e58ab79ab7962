//! How long a thread polls, and then yields, before it sleeps.
//!
//! A thread with a core of its own sleeps after some time, or at once when its yields let other
//! threads run: then it does not have the core. Where threads outnumber the cores, a yield lets
//! another one go on, so a thread sleeps only after many.
//!
//! A thread that had to sleep polls and yields for less time in its next wait, and a thread that
//! had not, for longer: it spins where waits are short, and hardly at all where it would only take
//! time from others.

use std::{
    thread,
    time::{Duration, Instant},
};

/// The waits of a thread with a core of its own, from patient to impatient.
const LEVELS: [Level; 5] = [
    Level { polls: 20_000, micros: 1000, contended: 4 },
    Level { polls: 4_000, micros: 500, contended: 2 },
    Level { polls: 800, micros: 250, contended: 1 },
    Level { polls: 160, micros: 125, contended: 1 },
    Level { polls: 64, micros: 64, contended: 1 },
];

/// A yield of this length has let another thread run.
const CONTENDED: Duration = Duration::from_micros(3);

/// The shortest and the longest sleep of a wait that nothing ends but the clock.
const NAPS: [Duration; 2] = [Duration::from_micros(60), Duration::from_millis(1)];
/// In between it is this part of the time waited so far: so late a wait ends.
const NAP_PART: u32 = 64;

/// How long a thread sleeps that nothing wakes, after so long a wait.
#[must_use]
pub fn nap_after(waited: Duration) -> Duration {
    let [shortest, longest] = NAPS;
    (waited / NAP_PART).clamp(shortest, longest)
}

/// Yields before a thread sleeps where threads outnumber the cores.
const YIELDS: u32 = 2_000;

/// What a thread does before it sleeps.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Polls before the first yield. The most take some tens of microseconds, longer than any hot
    /// wait.
    polls: u32,
    /// The time in which it yields.
    micros: u64,
    /// The yields to other threads after which it sleeps at once.
    contended: u32,
}

/// How patient the next wait is, as earlier waits have shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Whether each thread can have a core of its own.
    fits: bool,
    level: u8,
}

/// The yields of one wait.
#[derive(Debug)]
pub(crate) struct Yields {
    patience: Patience,
    begun: Instant,
    yields: u32,
    contended: u32,
}

impl Patience {
    /// That of the first wait.
    pub(crate) const fn new(fits: bool) -> Self {
        Self { fits, level: 0 }
    }

    /// That of a thread that is no PE, and has no core of its own.
    pub(crate) const fn of_a_guest() -> Self {
        Self { fits: true, level: 2 }
    }

    /// That of a level that [`Self::level`] has returned.
    pub(crate) fn at(self, level: u8) -> Self {
        Self { level, ..self }
    }

    /// The level: 0 is the most patient.
    pub(crate) fn level(self) -> u8 {
        self.level
    }

    fn limits(self) -> Level {
        LEVELS[usize::from(self.level).min(LEVELS.len() - 1)]
    }

    /// Polls before the first yield.
    #[inline]
    pub(crate) fn polls(self) -> u32 {
        if self.fits { self.limits().polls } else { 1 }
    }

    /// The patience after a wait that has yielded.
    pub(crate) fn after(self, slept: bool) -> Self {
        let most = u8::try_from(LEVELS.len() - 1).unwrap_or(u8::MAX);
        let level = if slept { (self.level + 1).min(most) } else { self.level.saturating_sub(1) };
        self.at(level)
    }
}

impl Yields {
    /// The yields of a wait that begins.
    pub(crate) fn new(patience: Patience) -> Self {
        Self { patience, begun: Instant::now(), yields: 0, contended: 0 }
    }

    /// How long the wait has lasted.
    pub(crate) fn waited(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether it is time to sleep, after so long a wait.
    pub(crate) fn are_over(&self, waited: Duration) -> bool {
        let Level { micros, contended, .. } = self.patience.limits();
        if self.patience.fits {
            self.contended >= contended || waited >= Duration::from_micros(micros)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sleeps_becomes_impatient_and_who_does_not_patient_again() {
        let mut patience = Patience::new(true);
        let first = patience.polls();
        for _ in 0..2 * LEVELS.len() {
            let next = patience.after(true);
            assert!(next.polls() <= patience.polls());
            patience = next;
        }
        assert_eq!(patience.polls(), 64);
        for _ in 1..LEVELS.len() {
            patience = patience.after(false);
        }
        assert_eq!(patience.polls(), first);
        assert_eq!(Patience::new(false).polls(), 1);
    }
}
