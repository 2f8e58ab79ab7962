//! How long a thread polls, and then yields, before it sleeps.
//!
//! A thread with a core of its own sleeps after some time. If it had to sleep, it polls and yields
//! for less time in its next wait, and if it had not, for longer: it spins where waits are short,
//! and hardly at all where it would only take time from others.
//!
//! Where threads outnumber the cores, a yield lets another one go on, so a thread sleeps only after
//! many.
//!
//! A thread that shares its core with one that does not wait gives away a time slice of
//! milliseconds with a yield, and takes time from its own peers while it polls. So a yield that
//! took long is the last of its wait; after two such waits a thread does not yield at all but
//! sleeps at once, as it would at a mutex, and tries a yield again every half second.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::system::clock;

/// The waits of a thread with a core of its own, from patient to impatient.
const LEVELS: [Level; 5] = [
    Level { polls: 4_000, micros: 500 },
    Level { polls: 2_000, micros: 250 },
    Level { polls: 1_000, micros: 125 },
    Level { polls: 500, micros: 64 },
    Level { polls: 250, micros: 32 },
];

/// A yield of this length has let another thread run.
const CONTENDED: Duration = Duration::from_micros(3);
/// A yield of this length is taken as a sign that a thread ran which does not wait, where threads
/// outnumber the cores.
const BUSY: Duration = Duration::from_micros(500);
/// Waits with such a yield, one after the other, after which a thread yields no more.
const STRIKES: u8 = 2;
/// The time after which it tries again, in milliseconds.
const RETRIAL: u32 = 500;

/// Polls between yields.
pub const POLLS_PER_YIELD: u32 = 100;
/// The longest sleep before a thread looks around, as a peer may die without a message. Where PEs
/// check their peers less often, they sleep until the next check.
pub const SLEEP: Duration = Duration::from_millis(20);

/// The shortest and the longest sleep of a wait that nothing ends but the clock.
const NAPS: [Duration; 2] = [Duration::from_micros(60), Duration::from_millis(4)];
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
    /// Polls before the first yield. The most take some 50 us, longer than any hot wait.
    polls: u32,
    /// The time in which it yields.
    micros: u64,
}

/// How patient the next wait is, as earlier waits have shown.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Whether each thread can have a core of its own.
    fits: bool,
    /// Where in [`LEVELS`].
    level: u8,
    /// The waits with long yields since the last one without.
    strikes: u8,
    /// When the last of them ended, in milliseconds.
    struck: u32,
}

/// The yields of one wait.
#[derive(Debug)]
pub struct Yields {
    patience: Patience,
    begun: Instant,
    yields: u32,
    /// Whether a yield took long.
    contended: bool,
    slept: bool,
}

impl Patience {
    /// That of the first wait.
    pub const fn new(fits: bool) -> Self {
        Self { fits, level: 0, strikes: 0, struck: 0 }
    }

    /// That of a thread that is no PE, and has no core of its own.
    pub const fn of_a_guest() -> Self {
        Self { level: 2, ..Self::new(true) }
    }

    /// All but whether each thread can have a core, in one word.
    pub fn word(self) -> u64 {
        let Self { level, strikes, struck, .. } = self;
        u64::from(struck) << 32 | u64::from(strikes) << 8 | u64::from(level)
    }

    /// The patience of which [`Self::word`] has made `word`.
    pub fn of_word(fits: bool, word: u64) -> Self {
        let [level, strikes, _, _, struck @ ..] = word.to_le_bytes();
        Self { fits, level, strikes, struck: u32::from_le_bytes(struck) }
    }

    fn limits(self) -> Level {
        LEVELS[usize::from(self.level).min(LEVELS.len() - 1)]
    }

    /// Polls before the first yield.
    #[inline]
    pub fn polls(self) -> u32 {
        if self.fits { self.limits().polls } else { 1 }
    }

    /// Whether a thread sleeps rather than yields.
    fn avoids_yields(self) -> bool {
        self.strikes >= STRIKES && now_ms().wrapping_sub(self.struck) < RETRIAL
    }
}

/// Now, in milliseconds. Wraps.
fn now_ms() -> u32 {
    let ms = clock::now_ns() / 1_000_000;
    u32::try_from(ms & u64::from(u32::MAX)).unwrap_or_default()
}

impl Yields {
    /// The yields of a wait that begins.
    pub fn new(patience: Patience) -> Self {
        Self { patience, begun: Instant::now(), yields: 0, contended: false, slept: false }
    }

    /// How long the wait has lasted.
    pub fn waited(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether it is time to sleep, after so long a wait.
    pub fn are_over(&self, waited: Duration) -> bool {
        let Self { patience, yields, contended, .. } = *self;
        let long = if patience.fits {
            waited >= Duration::from_micros(patience.limits().micros)
        } else {
            yields >= YIELDS
        };
        contended || long || patience.avoids_yields()
    }

    /// Yields the core once.
    pub fn yield_now(&mut self) {
        let begun = Instant::now();
        thread::yield_now();
        let long = if self.patience.fits { CONTENDED } else { BUSY };
        self.contended |= begun.elapsed() >= long;
        self.yields += 1;
    }

    /// Notes that the thread sleeps.
    pub fn note_sleep(&mut self) {
        self.slept = true;
    }

    /// The patience of the next wait.
    pub fn next_patience(&self) -> Patience {
        let Self { patience, contended, slept, yields, .. } = *self;
        let Patience { level, strikes, struck, .. } = patience;
        let most = u8::try_from(LEVELS.len() - 1).unwrap_or(u8::MAX);
        let level =
            if slept || contended { (level + 1).min(most) } else { level.saturating_sub(1) };
        let (strikes, struck) = match contended {
            true => ((strikes + 1).min(STRIKES), now_ms()),
            false if yields > 0 => (0, struck),
            false => (strikes, struck),
        };
        Patience { level, strikes, struck, ..patience }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(patience: Patience, contended: bool, slept: bool) -> Patience {
        Yields { yields: 1, contended, slept, ..Yields::new(patience) }.next_patience()
    }

    #[test]
    fn who_sleeps_becomes_impatient_and_who_does_not_patient_again() {
        let mut patience = Patience::new(true);
        let first = patience.polls();
        for _ in 0..2 * LEVELS.len() {
            let next = after(patience, false, true);
            assert!(next.polls() <= patience.polls());
            patience = next;
        }
        assert_eq!(patience.polls(), LEVELS[LEVELS.len() - 1].polls);
        for _ in 1..LEVELS.len() {
            patience = after(patience, false, false);
        }
        assert_eq!(patience.polls(), first);
        assert_eq!(Patience::new(false).polls(), 1);
    }

    #[test]
    fn who_shares_its_core_yields_no_more_until_later() {
        for fits in [false, true] {
            let once = after(Patience::new(fits), true, true);
            assert!(!once.avoids_yields(), "one long yield may be chance");
            assert!(!after(after(once, false, false), true, true).avoids_yields());
            let mut twice = after(once, true, true);
            assert!(twice.avoids_yields());
            assert!(Yields::new(twice).are_over(Duration::ZERO));
            // A wait without a yield says nothing about the core.
            let silent = Yields { slept: true, ..Yields::new(twice) }.next_patience();
            assert!(silent.avoids_yields());
            assert!(Patience::of_word(fits, twice.word()).avoids_yields());
            twice.struck = twice.struck.wrapping_sub(RETRIAL);
            assert!(!twice.avoids_yields());
            assert!(after(twice, true, true).avoids_yields(), "the retrial failed");
            assert!(!after(after(twice, false, false), true, true).avoids_yields());
        }
    }
}
