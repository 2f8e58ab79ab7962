//! The time for which a thread polls, and then yields, before it sleeps.
//!
//! A thread that has a core to itself sleeps after some time. If it had to sleep, it polls and
//! yields for less time in its next wait, and otherwise for longer. So it spins if waits are short,
//! and hardly spins if that would only take time from others.
//!
//! If threads outnumber the cores, a yield lets another thread run, so a thread sleeps only after
//! many yields.
//!
//! Suppose a thread shares its core with a thread that does not wait. Each yield then costs a time
//! slice of milliseconds, and each poll takes time from the thread's own peers. So after one slow
//! yield, the wait yields no more. After two such waits, the thread sleeps at once, as it would at
//! a mutex. The longer that yield took, the longer the thread waits before it tries a yield again.
//! So it loses only a small part of its time in such yields. A PE asks the system now and then how
//! many threads can run. If only its peers can, it yields again at once ([`Yields::are_over`]). A
//! yield may also be slow because it let peers compute. Such a yield loses nothing, and is forgiven
//! ([`Yields::yield_now`]).

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::system::clock;

/// The limits of a thread that has a core to itself, from the largest to the smallest.
const LEVELS: [Level; 7] = [
    Level { polls: 4_000, micros: 500 },
    Level { polls: 2_000, micros: 250 },
    Level { polls: 1_000, micros: 125 },
    Level { polls: 500, micros: 64 },
    Level { polls: 250, micros: 32 },
    Level { polls: 125, micros: 16 },
    Level { polls: 60, micros: 8 },
];

/// If a wait slept although it took at most this many microseconds, the next one polls for that
/// long, because a wake-up takes a large part of such a wait.
const WORTH_POLLING: u64 = 64;

/// A yield that takes at least this long has let another thread run.
const CONTENDED: Duration = Duration::from_micros(3);
/// Where threads outnumber the cores, a yield that takes at least this long is a sign of a thread
/// that does not wait.
const BUSY: Duration = Duration::from_micros(500);
/// A wait sleeps after this many forgiven yields. A wake-up costs little next to such a long wait,
/// and some of the yields may have let a stranger run unnoticed.
const MOST_FORGIVEN: u8 = 16;
/// After this many consecutive waits with such a yield, a thread stops yielding in its waits.
const STRIKES: u8 = 2;
/// It tries a yield again after this many times the duration of the last such yield.
const RETRIAL: u32 = 32;
/// The shortest and the longest time until then, in milliseconds.
const RETRIALS: [u128; 2] = [4, 512];

/// Polls between yields.
pub const POLLS_PER_YIELD: u32 = 100;
/// The longest sleep before a thread checks its peers, since a peer may die without a message. PEs
/// that check their peers less often sleep until the next check.
pub const SLEEP: Duration = Duration::from_millis(20);

/// The shortest and the longest sleep of a wait that only the clock ends.
const NAPS: [Duration; 2] = [Duration::from_micros(60), Duration::from_millis(4)];
/// Between those two, a sleep lasts the time waited so far divided by this, so a wait ends late
/// only by that fraction of its length.
const NAP_PART: u32 = 64;

/// Returns how long a thread that nothing wakes sleeps next, after it has waited for `waited`.
#[must_use]
pub fn nap_after(waited: Duration) -> Duration {
    let [shortest, longest] = NAPS;
    (waited / NAP_PART).clamp(shortest, longest)
}

/// The number of yields before a thread sleeps, where threads outnumber the cores.
const YIELDS: u32 = 2_000;

/// The limits on polling and yielding before a sleep.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Polls before the first yield. The most take about 50 us, longer than any hot wait.
    polls: u32,
    /// How long the thread yields before it sleeps, in microseconds.
    micros: u64,
}

/// The limits of polling and yielding in the next wait, learned from earlier waits.
#[derive(Clone, Copy, Debug)]
pub struct SpinBudget {
    /// Whether each thread can have a core to itself.
    fits: bool,
    /// The index in [`LEVELS`].
    level: u8,
    /// The number of waits with long yields since the last wait without one.
    strikes: u8,
    /// How long the thread then avoids yields, in milliseconds.
    pause: u16,
    /// When the last of these waits ended, in milliseconds.
    struck: u32,
    /// The number of times that the thread has checked since then whether others compete with it.
    looks: u8,
}

/// The yields of one wait.
#[derive(Debug)]
pub struct Yields {
    budget: SpinBudget,
    begun: Instant,
    yields: u32,
    /// The duration of the yield that took long, if one did.
    contended: Option<Duration>,
    /// The number of long yields that were forgiven.
    forgiven: u8,
    slept: bool,
}

impl SpinBudget {
    /// Returns the budget of the first wait.
    pub const fn new(fits: bool) -> Self {
        Self { fits, level: 0, strikes: 0, pause: 0, struck: 0, looks: 0 }
    }

    /// Returns the budget of a thread that is not a PE and has no core to itself.
    pub const fn for_guest() -> Self {
        Self { level: 2, ..Self::new(true) }
    }

    /// Packs everything except `fits` into one word.
    pub fn word(self) -> u64 {
        let Self { fits: _, level, strikes, pause, struck, looks } = self;
        let counts = u64::from(looks) << 12 | u64::from(strikes) << 8 | u64::from(level);
        u64::from(struck) << 32 | u64::from(pause) << 16 | counts
    }

    /// Unpacks a word made by [`Self::word`].
    pub fn of_word(fits: bool, word: u64) -> Self {
        let [level, counts, low, high, struck @ ..] = word.to_le_bytes();
        let (pause, struck) = (u16::from_le_bytes([low, high]), u32::from_le_bytes(struck));
        Self { fits, level, strikes: counts & 15, pause, struck, looks: counts >> 4 }
    }

    fn limits(self) -> Level {
        LEVELS[usize::from(self.level).min(LEVELS.len() - 1)]
    }

    /// Returns the number of polls before the first yield.
    #[inline]
    pub fn polls(self) -> u32 {
        if self.fits { self.limits().polls } else { 1 }
    }

    /// Returns whether the thread sleeps instead of yielding.
    fn avoids_yields(self) -> bool {
        self.strikes >= STRIKES && now_ms().wrapping_sub(self.struck) < u32::from(self.pause)
    }

    /// Returns whether it is time to look whether others still compete with the thread. The times
    /// between two looks double, so the looks cost little.
    fn is_look_due(self) -> bool {
        u128::from(now_ms().wrapping_sub(self.struck)) >= RETRIALS[0] << self.looks
    }
}

/// Returns the current time in milliseconds, modulo 2^32.
fn now_ms() -> u32 {
    let ms = clock::now_ns() / 1_000_000;
    u32::try_from(ms & u64::from(u32::MAX)).unwrap_or_default()
}

impl Yields {
    /// Starts to count the yields of a new wait.
    pub fn new(budget: SpinBudget) -> Self {
        let begun = Instant::now();
        Self { budget, begun, yields: 0, contended: None, forgiven: 0, slept: false }
    }

    /// Returns how long the wait has lasted.
    pub fn waited(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns whether it is time to sleep, after the wait has lasted for `waited`. While the thread
    /// avoids yields, this calls `others_compete` now and then. If it returns false, the thread
    /// yields again.
    pub fn are_over(&mut self, waited: Duration, others_compete: impl FnOnce() -> bool) -> bool {
        if self.budget.avoids_yields() && self.budget.is_look_due() {
            self.budget.looks += 1;
            if !others_compete() {
                self.budget.strikes = 0;
            }
        }
        let Self { budget, yields, contended, forgiven, .. } = *self;
        let long = if budget.fits {
            waited >= Duration::from_micros(budget.limits().micros)
        } else {
            yields >= YIELDS || forgiven >= MOST_FORGIVEN
        };
        contended.is_some() || long || budget.avoids_yields()
    }

    /// Returns whether a yield took long, and was not forgiven.
    pub fn are_contended(&self) -> bool {
        self.contended.is_some()
    }

    /// Yields the core once, and returns how long that took. If threads outnumber the cores, a long
    /// yield is forgiven unless `others_compete` with them, because it has let peers run.
    pub fn yield_now(&mut self, others_compete: impl FnOnce() -> bool) -> Duration {
        let begun = Instant::now();
        thread::yield_now();
        let took = begun.elapsed();
        self.note_yield(took, others_compete);
        took
    }

    fn note_yield(&mut self, took: Duration, others_compete: impl FnOnce() -> bool) {
        self.yields += 1;
        let Self { budget: SpinBudget { fits, .. }, .. } = *self;
        if took < if fits { CONTENDED } else { BUSY } {
            return;
        }
        if fits || others_compete() {
            self.contended = Some(took);
        } else {
            self.forgiven = self.forgiven.saturating_add(1);
        }
    }

    /// Records that the thread sleeps.
    pub fn note_sleep(&mut self) {
        self.slept = true;
    }

    /// Returns the smallest level with which the wait would not have slept, if that is worth it.
    fn level_that_lasts(&self) -> Option<u8> {
        let waited = u64::try_from(self.waited().as_micros()).ok()?;
        let lasts = |level: &Level| (waited..=WORTH_POLLING).contains(&level.micros);
        u8::try_from(LEVELS.iter().rposition(lasts)?).ok()
    }

    /// Returns the budget of the next wait.
    pub fn next_budget(&self) -> SpinBudget {
        let Self { budget, contended, slept, yields, .. } = *self;
        let SpinBudget { level, .. } = budget;
        let most = u8::try_from(LEVELS.len() - 1).unwrap_or(u8::MAX);
        let level = match self.level_that_lasts() {
            Some(level) if slept && contended.is_none() => level,
            _ if slept || contended.is_some() => (level + 1).min(most),
            _ => level.saturating_sub(1),
        };
        let budget = SpinBudget { level, ..budget };
        match contended {
            Some(took) => {
                let [shortest, longest] = RETRIALS;
                let pause = (took * RETRIAL).as_millis().clamp(shortest, longest);
                SpinBudget {
                    strikes: (budget.strikes + 1).min(STRIKES),
                    pause: u16::try_from(pause).unwrap_or(u16::MAX),
                    struck: now_ms(),
                    looks: 0,
                    ..budget
                }
            }
            None if yields > 0 => SpinBudget { strikes: 0, ..budget },
            None => budget,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(budget: SpinBudget, contended: bool, slept: bool) -> SpinBudget {
        let contended = contended.then_some(BUSY);
        Yields { yields: 1, contended, slept, ..Yields::new(budget) }.next_budget()
    }

    #[test]
    fn polling_shrinks_after_sleeps_and_recovers() {
        let mut budget = SpinBudget::new(true);
        let first = budget.polls();
        for _ in 0..2 * LEVELS.len() {
            let next = after(budget, false, true);
            assert!(next.polls() <= budget.polls());
            budget = next;
        }
        assert_eq!(budget.polls(), LEVELS[LEVELS.len() - 1].polls);
        for _ in 1..LEVELS.len() {
            budget = after(budget, false, false);
        }
        assert_eq!(budget.polls(), first);
        assert_eq!(SpinBudget::new(false).polls(), 1);
    }

    #[test]
    fn pe_that_shares_its_core_pauses_yielding() {
        for fits in [false, true] {
            let once = after(SpinBudget::new(fits), true, true);
            assert!(!once.avoids_yields(), "one long yield may be chance");
            assert!(!after(after(once, false, false), true, true).avoids_yields());
            let mut twice = after(once, true, true);
            assert!(twice.avoids_yields());
            assert!(Yields::new(twice).are_over(Duration::ZERO, || true));
            // A wait without a yield says nothing about the core.
            let silent = Yields { slept: true, ..Yields::new(twice) }.next_budget();
            assert!(silent.avoids_yields());
            assert!(SpinBudget::of_word(fits, twice.word()).avoids_yields());
            let pause = u32::from(twice.pause);
            assert_eq!(u128::from(pause), (BUSY * RETRIAL).as_millis());
            assert!(later(twice, pause / 2).avoids_yields());
            twice = later(twice, pause);
            assert!(!twice.avoids_yields());
            assert!(!after(after(twice, false, false), true, true).avoids_yields());
            assert!(after(twice, true, true).avoids_yields(), "the retrial failed");
        }
    }

    #[test]
    fn thread_yields_again_once_nobody_competes() {
        let struck = SpinBudget { strikes: STRIKES, pause: 512, ..SpinBudget::new(true) };
        let after = |ms, looks| later(SpinBudget { struck: now_ms(), looks, ..struck }, ms);
        let asks = |budget, others_compete| {
            let (mut yields, mut asked) = (Yields::new(budget), false);
            let are_over = yields.are_over(Duration::ZERO, || {
                asked = true;
                others_compete
            });
            (asked, are_over, SpinBudget::of_word(true, yields.next_budget().word()))
        };
        for (ms, looks, is_due) in [(60, 5, false), (200, 5, true), (100, 6, false), (400, 6, true)]
        {
            let (asked, are_over, next) = asks(after(ms, looks), true);
            assert_eq!((asked, are_over), (is_due, true), "{ms} ms, {looks} looks");
            assert!(next.avoids_yields() && next.looks == looks + u8::from(is_due));
        }
        let (asked, are_over, next) = asks(after(100, 0), false);
        assert!(asked && !are_over && !next.avoids_yields());
        let mut yields = Yields::new(SpinBudget::new(true));
        yields.are_over(Duration::ZERO, || panic!("nobody asks a thread that yields"));
    }

    #[test]
    fn long_yield_that_let_peers_run_is_forgiven() {
        let after = |fits, took, others_compete: bool| {
            let mut yields = Yields::new(SpinBudget::new(fits));
            yields.note_yield(took, || others_compete);
            yields
        };
        for (fits, others_compete, contended) in
            [(false, true, true), (false, false, false), (true, false, true)]
        {
            let mut yields = after(fits, BUSY, others_compete);
            assert_eq!(yields.are_contended(), contended, "{fits}, {others_compete}");
            assert_eq!(yields.are_over(Duration::ZERO, || true), contended);
            let changes = yields.next_budget().word() != SpinBudget::new(fits).word();
            assert_eq!(changes, contended);
        }
        let mut short = Yields::new(SpinBudget::new(false));
        short.note_yield(BUSY / 2, || panic!("nobody asks after a short yield"));
    }

    #[test]
    fn wait_with_many_forgiven_yields_sleeps() {
        let mut yields = Yields::new(SpinBudget::new(false));
        for _ in 0..MOST_FORGIVEN {
            assert!(!yields.are_over(Duration::ZERO, || true));
            yields.note_yield(BUSY, || false);
        }
        assert!(yields.are_over(Duration::ZERO, || true));
        assert!(!yields.next_budget().avoids_yields());
    }

    #[test]
    fn longer_yield_is_avoided_for_longer() {
        let pause = |took| {
            let budget = SpinBudget::new(true);
            Yields { contended: Some(took), ..Yields::new(budget) }.next_budget().pause
        };
        let ms = [CONTENDED, Duration::from_millis(3), Duration::from_secs(1)].map(pause);
        assert_eq!(ms, [4, 96, 512]);
    }

    /// Returns the budget as it is after some milliseconds.
    fn later(budget: SpinBudget, ms: u32) -> SpinBudget {
        SpinBudget { struck: budget.struck.wrapping_sub(ms), ..budget }
    }

    /// The longest budgets are not worth it, because a wake-up takes a small part of such a wait.
    #[test]
    fn short_wait_with_a_sleep_is_polled_next_time() {
        let mut budget = SpinBudget::new(true);
        for _ in LEVELS {
            budget = after_long(budget, Duration::from_secs(1));
        }
        let least = budget.limits().micros;
        assert_eq!(least, LEVELS[LEVELS.len() - 1].micros);
        assert_eq!(
            after_long(budget, Duration::from_micros(WORTH_POLLING - 40)).limits().micros,
            32
        );
        let worth = Duration::from_micros(WORTH_POLLING + 1);
        assert_eq!(after_long(budget, worth).limits().micros, least);
    }

    /// Returns the budget after a wait that slept and took this long.
    fn after_long(budget: SpinBudget, waited: Duration) -> SpinBudget {
        let begun = Instant::now().checked_sub(waited).expect("the machine has run for longer");
        Yields { begun, slept: true, ..Yields::new(budget) }.next_budget()
    }
}
