//! A barging lock that hands over after a while: the scheme of Linux's mutexes since 2016 (Long),
//! with an MCS lock as the queue.
//!
//! Any thread may take the lock while it is free. That is fast: often the last holder takes it
//! again, with lock and data in its cache. The others queue up. The first in the queue checks the
//! lock from time to time, and takes it if it is free and not in rapid use: if the threads
//! alternated at each section, each section would cost a transfer of the line. After a turn of 100
//! us, or as soon as the lock is no longer in rapid use, the first asks for the lock, and the
//! holder then hands it over. So a thread waits for one turn of each thread before it, and none
//! starves.
//!
//! If threads work between sections, turns let only one work at a time, and alternating may be
//! faster. So the holder measures both, and tries the slower one again from time to time.
//!
//! The first cannot ask while it waits for a processor. If that is the holder's, it may wait until
//! the scheduler's next tick: 4 ms. So the holder looks at the clock at each 256th release, and
//! hands over if the first has waited for 400 us.
//!
//! Shorter turns would not help: if threads outnumber the cores, the next thread sleeps, and takes
//! about 50 us to wake. If it spun or yielded instead, it might keep the holder off a shared core
//! for some milliseconds. Turns would then have random lengths, which is unfair.
//!
//! | `state` | meaning |
//! | --- | --- |
//! | 0 | the lock is free |
//! | `HELD` | a thread holds it |
//! | `HELD` and `ASKED` | the first in the queue, at `first`, gets it next |
//!
//! A thread first tries to exchange 0 for `HELD`: checking first would cost one more transfer of a
//! line that another thread has written. While threads alternate, it does so twice.

#![expect(unsafe_code, reason = "links nodes by addresses, and relies on a lock")]

use std::{
    mem::replace,
    sync::atomic::Ordering::{Acquire, Relaxed, Release},
};

use consort_machine::{Line, Machine, Until, Word};

use super::{Mcs, RawLock};

const HELD: u64 = 1;
const ASKED: u64 = 2;

/// The word of a node that `Mcs` leaves to the holder; 1 once its thread has the lock.
const HANDED: usize = 2;
/// The word of a node with a time, after which the holder hands over without being asked.
const OVERDUE: usize = 3;

/// Cycles of rest between two checks: the first rest, the longest for a thread that has not queued
/// up yet, and the longest for the first in the queue.
const FIRST_REST: u64 = 80;
const LONGEST_BEFORE: u64 = if cfg!(loom) { FIRST_REST / 2 } else { 1_000 };
const LONGEST_REST: u64 = 4_000;
/// The first in the queue watches the lock for this many cycles. If the use is rapid, it then
/// sleeps until the turn ends. In loom models it checks once.
const SPIN: u64 = if cfg!(loom) { FIRST_REST } else { 4_000 };
/// The time after which the first in the queue asks for the lock: a turn. 0 in loom models.
const TURN_NS: u64 = if cfg!(loom) { 0 } else { 100_000 };
/// The time after which the holder hands over without having been asked. 0 in loom models.
const LONGEST_TURN_NS: u64 = 4 * TURN_NS;
/// The number of releases between two looks at the clock. 2 in loom models, to keep them small.
const RELEASES_PER_LOOK: u64 = if cfg!(loom) { 2 } else { 256 };
/// The bit of `releases` that is set while threads alternate.
const ALTERNATE: u64 = 1 << 63;
/// The bit of `releases` that a thread sets when it gets the lock after a wait.
const CONTENDED: u64 = 1 << 62;
/// The other bits of `releases`.
const COUNT: u64 = CONTENDED - 1;
/// The shortest time over which a rate is measured.
const WINDOW_NS: u64 = TURN_NS;
/// Loom models leave rates out: only the holder uses what they need, so no order matters for it.
const MEASURES: bool = cfg!(not(loom));
/// The most windows between trials, as a power of 2.
const RAREST_TRIAL: u64 = 7;
/// The lock is in rapid use if it is released more often than once in this many cycles, the time of
/// several transfers of a line.
const RAPID: u64 = 400;

/// The rates of both ways, and the time of the next trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Trials {
    /// The releases in 100 us, in the last window with turns and in the last with alternating
    /// threads.
    rates: [u64; 2],
    /// The windows until the next trial; 0 in the first window of a trial, and `COMPARED` in its
    /// second. The first is too slow even if the other way is faster, because threads still sleep.
    left: u64,
    /// The number of windows between trials, as a power of 2.
    rarity: u64,
}

impl Trials {
    const COMPARED: u64 = 0xff;
    const RATE_BITS: u32 = 24;
    const MOST_RATE: u64 = (1 << Self::RATE_BITS) - 1;

    fn from_word(word: u64) -> Self {
        let rates = [word, word >> Self::RATE_BITS].map(|rate| rate & Self::MOST_RATE);
        Self { rates, left: word >> 48 & 0xff, rarity: word >> 56 }
    }

    fn word(self) -> u64 {
        let [turns, alternating] = self.rates.map(|rate| rate.min(Self::MOST_RATE));
        turns | alternating << Self::RATE_BITS | self.left << 48 | self.rarity << 56
    }

    /// Notes the rate of a window. Returns whether threads alternate in the next one.
    fn next(&mut self, alternate: bool, rate: u64) -> bool {
        self.rates[usize::from(alternate)] = rate;
        let other = self.rates[usize::from(!alternate)];
        match self.left {
            0 if rate > other / 4 * 3 => {
                self.left = Self::COMPARED;
                alternate
            }
            0 | Self::COMPARED => {
                let wins = rate > other;
                self.rarity = if wins { 0 } else { (self.rarity + 1).min(RAREST_TRIAL) };
                self.left = 1 << self.rarity;
                alternate == wins
            }
            _ => {
                self.left -= 1;
                alternate != (self.left == 0)
            }
        }
    }
}

/// A barging lock that hands over after a turn of 100 to 400 microseconds while others wait. No
/// thread starves.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Handoff {
    /// When the present window began; 0 if none has.
    window_ns: Word,
    /// The number of releases by then.
    window_releases: Word,
    /// The [`Trials`].
    trials: Word,
    /// Its holder is the first in the queue.
    queue: Mcs,
    /// The node of the first in the queue; 0 if there is none, or if it has the lock. A thread
    /// announces itself if the queue was empty. Otherwise the thread before it, which then has the
    /// lock, does so.
    first: Word,
    /// The number of releases, which shows how rapidly the lock is used, `ALTERNATE` and
    /// `CONTENDED`. Only the holder changes it. Like `state`, it is close to the data, because a
    /// transfer then often moves all three.
    releases: Word,
    state: Word,
}

impl Handoff {
    /// Creates a free lock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            window_ns: Word::new(0),
            window_releases: Word::new(0),
            trials: Word::new(0),
            queue: Mcs::new(),
            first: Word::new(0),
            releases: Word::new(0),
            state: Word::new(0),
        }
    }

    /// Takes the lock if it is free.
    #[inline(always)]
    async fn take<M: Machine>(&self, m: &M) -> Option<()> {
        m.compare_exchange(&self.state, 0, HELD, Acquire).await.ok().map(|_| ())
    }

    /// Returns whether threads alternate, or the lock is not in rapid use. `releases` is the count
    /// at the caller's last check, at least `cycles` cycles ago.
    async fn is_quiet<M: Machine>(&self, m: &M, releases: &mut u64, cycles: u64) -> bool {
        let now = m.load(&self.releases, Relaxed).await;
        let passed = now.wrapping_sub(replace(releases, now)) & COUNT;
        now & ALTERNATE != 0 || passed.saturating_mul(RAPID) <= cycles.max(RAPID)
    }

    /// Checks the lock after ever longer rests, up to `longest`, and takes it if it is free and
    /// quiet. Returns whether it did so within `cycles` cycles of rest.
    async fn watch<M: Machine>(&self, m: &M, longest: u64, cycles: u64) -> bool {
        let (mut rest, mut rested) = (FIRST_REST, 0);
        let mut releases = m.load(&self.releases, Relaxed).await;
        while rested < cycles {
            m.pause(rest).await;
            if self.is_quiet(m, &mut releases, rest).await
                && m.load(&self.state, Relaxed).await == 0
                && self.take(m).await.is_some()
            {
                return true;
            }
            rested += rest;
            rest = (2 * rest).min(longest);
        }
        false
    }

    /// Publishes the first in the queue, which waits from now on.
    async fn announce<M: Machine>(&self, m: &M, first: &'static Line) {
        m.store(&first[OVERDUE], m.now_ns() + LONGEST_TURN_NS, Relaxed).await;
        m.store(&self.first, first.address(), Release).await; // pairs with the fence in `pass_on`
    }

    /// Waits for the lock as the first in the queue.
    async fn take_as_first<M: Machine>(&self, m: &M, mine: &'static Line) -> Result<(), M::Stop> {
        if m.load(&mine[HANDED], Relaxed).await == 0 {
            let turn_ends = m.now_ns() + TURN_NS;
            let mut releases = m.load(&self.releases, Relaxed).await;
            if self.watch(m, LONGEST_REST, SPIN).await {
                return Ok(());
            }
            if !self.is_quiet(m, &mut releases, SPIN).await && m.now_ns() < turn_ends {
                m.wait_until_time(&mine[HANDED], Until::Equals(1), turn_ends).await?;
            }
        }
        loop {
            if self.take(m).await.is_some() {
                return Ok(());
            }
            // Pairs with the fence in `pass_on`.
            let asked = m.compare_exchange(&self.state, HELD, HELD | ASKED, Release).await;
            if asked.is_ok() {
                m.wait_until(&mine[HANDED], Until::Equals(1)).await?;
                // The holder may have handed over before it was asked.
                m.store(&self.state, HELD, Relaxed).await;
                return Ok(());
            }
        }
    }

    /// Leaves the queue, and announces the next thread in it. The caller is the first in the queue
    /// and has the lock.
    async fn leave_queue<M: Machine>(&self, m: &M, mine: &'static Line) -> Result<(), M::Stop> {
        m.store(&self.first, 0, Relaxed).await;
        // SAFETY: the thread holds the queue, with this token.
        let Err(mine) = unsafe { self.queue.leave(m, mine) }.await else { return Ok(()) };
        self.announce(m, Mcs::next(m, mine).await?).await;
        // SAFETY: as above, and this is what `leave` returned.
        unsafe { self.queue.pass_on(m, mine) }.await
    }

    /// Notes that the caller, which has the lock, waited for it.
    async fn note_waited<M: Machine>(&self, m: &M) {
        if !MEASURES {
            return;
        }
        let releases = m.load(&self.releases, Relaxed).await;
        if releases & CONTENDED == 0 {
            m.store(&self.releases, releases | CONTENDED, Relaxed).await;
        }
    }

    /// Ends the present window if it is long enough, and decides whether threads alternate in the
    /// next one. Nothing is measured while no thread waits. The caller has the lock.
    async fn look<M: Machine>(&self, m: &M) {
        let releases = m.load(&self.releases, Relaxed).await;
        let count = releases & COUNT;
        let begun = m.load(&self.window_ns, Relaxed).await;
        let contended = releases & CONTENDED != 0 || m.load(&self.first, Relaxed).await != 0;
        if begun == 0 && !contended {
            return;
        }
        let now = m.now_ns();
        let passed = now.saturating_sub(begun);
        if begun != 0 && passed < WINDOW_NS {
            return;
        }
        let mut alternate = releases & ALTERNATE != 0;
        if begun != 0 && contended {
            let made = count.wrapping_sub(m.load(&self.window_releases, Relaxed).await) & COUNT;
            let mut trials = Trials::from_word(m.load(&self.trials, Relaxed).await);
            alternate = trials.next(alternate, made.saturating_mul(100_000) / passed);
            m.store(&self.trials, trials.word(), Relaxed).await;
        }
        m.store(&self.window_ns, if contended { now } else { 0 }, Relaxed).await;
        m.store(&self.window_releases, count, Relaxed).await;
        let way = if alternate { ALTERNATE } else { 0 };
        m.store(&self.releases, count | way, Relaxed).await;
    }

    /// Returns whether the first in the queue has waited for the longest turn. The caller has the
    /// lock.
    async fn is_overdue<M: Machine>(&self, m: &M) -> bool {
        let first = m.load(&self.first, Acquire).await; // pairs with the release in `announce`
        // SAFETY: the address is that of a node, and nodes are never freed.
        first != 0 && m.load(&unsafe { Line::at(first) }[OVERDUE], Relaxed).await <= m.now_ns()
    }
}

// SAFETY: a thread holds the lock if it set `HELD`, or once the holder has set its `HANDED`. Only
// the holder clears `HELD`, or sets `HANDED` of the first in the queue. The first has not taken the
// lock by then, because the lock was held. The release of either store pairs with the acquire of
// the exchange, or of the wait.
unsafe impl RawLock for Handoff {
    const NAME: &'static str = "handoff";
    #[cfg(not(loom))]
    const NEW: Self = Self::new();

    type Token = ();
    type WaitState = ();

    #[inline(always)]
    async fn enter<M: Machine>(&self, m: &M) -> Result<(), ()> {
        self.take(m).await.ok_or(())
    }

    async fn wait<M: Machine>(&self, m: &M, (): ()) -> Result<(), M::Stop> {
        if MEASURES && m.load(&self.releases, Relaxed).await & ALTERNATE != 0 {
            m.pause(FIRST_REST).await;
            if self.take(m).await.is_some() {
                self.note_waited(m).await;
                return Ok(());
            }
        }
        if self.watch(m, LONGEST_BEFORE, 2 * LONGEST_BEFORE).await {
            self.note_waited(m).await;
            return Ok(());
        }
        let mine = m.take_line();
        m.store(&mine[HANDED], 0, Relaxed).await;
        match self.queue.enter_with(m, mine).await {
            Ok(_) => self.announce(m, mine).await,
            Err(place) => {
                self.queue.wait(m, place).await?;
            }
        }
        self.take_as_first(m, mine).await?;
        self.note_waited(m).await;
        self.leave_queue(m, mine).await
    }

    #[inline(always)]
    async fn try_acquire<M: Machine>(&self, m: &M) -> Option<()> {
        self.take(m).await
    }

    async fn is_held<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.state, Relaxed).await & HELD != 0
    }

    #[inline(always)]
    async unsafe fn leave<M: Machine>(&self, m: &M, (): ()) -> Result<(), ()> {
        let releases = m.load(&self.releases, Relaxed).await;
        m.store(&self.releases, releases.wrapping_add(1), Relaxed).await;
        if releases.is_multiple_of(RELEASES_PER_LOOK) {
            return Err(());
        }
        // Pairs with the acquire in `take`.
        let freed = m.compare_exchange(&self.state, HELD, 0, Release).await;
        freed.map(|_| ()).map_err(|_| ())
    }

    /// Hands the lock over to the first in the queue if it has asked or is overdue. Otherwise
    /// releases the lock.
    async unsafe fn pass_on<M: Machine>(&self, m: &M, (): ()) -> Result<(), M::Stop> {
        if MEASURES && m.load(&self.releases, Relaxed).await % RELEASES_PER_LOOK == 1 {
            self.look(m).await;
        }
        if !self.is_overdue(m).await
            // Pairs with the acquire in `take`.
            && m.compare_exchange(&self.state, HELD, 0, Release).await.is_ok()
        {
            return Ok(());
        }
        // Pairs with the releases in `announce` and of the exchange that sets `ASKED`.
        m.fence(Acquire).await;
        // SAFETY: `first` holds the address of a node: it is overdue or has asked. Only the holder
        // removes it from there.
        let first = unsafe { Line::at(m.load(&self.first, Relaxed).await) };
        m.store(&first[HANDED], 1, Release).await; // pairs with the acquire of the wait
        m.wake(&first[HANDED]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs windows with these rates of turns and of alternating threads. Returns in which of them
    /// threads alternate.
    fn ways(trials: &mut Trials, windows: usize, rates: [u64; 2]) -> Vec<bool> {
        let mut alternate = false;
        (0..windows)
            .map(|_| {
                let next = trials.next(alternate, rates[usize::from(alternate)]);
                replace(&mut alternate, next)
            })
            .collect()
    }

    fn count_of(ways: &[bool], way: bool) -> usize {
        ways.iter().filter(|&&one| one == way).count()
    }

    #[test]
    fn the_faster_way_is_used_most_of_the_time() {
        let alternating = ways(&mut Trials::default(), 1_000, [5_000, 6_000]);
        assert!(count_of(&alternating[900..], true) >= 95);
        let turns = ways(&mut Trials::default(), 1_000, [6_000, 5_000]);
        assert!(count_of(&turns[900..], false) >= 95);
    }

    #[test]
    fn the_slower_way_is_tried_at_least_each_128_windows() {
        let turns = ways(&mut Trials::default(), 2_000, [6_000, 5_000]);
        assert!(turns.split(|&way| way).all(|between| between.len() <= 128));
    }

    #[test]
    fn the_other_way_is_used_once_it_is_faster() {
        let mut trials = Trials::default();
        ways(&mut trials, 1_000, [6_000, 5_000]);
        let later = ways(&mut trials, 300, [5_000, 6_000]);
        assert!(count_of(&later[200..], true) >= 90);
    }

    #[test]
    fn trials_fit_into_a_word() {
        let trials = Trials { rates: [3, Trials::MOST_RATE], left: Trials::COMPARED, rarity: 6 };
        assert_eq!(Trials::from_word(trials.word()), trials);
        let fast = Trials { rates: [1 << 40, 0], ..trials };
        assert_eq!(Trials::from_word(fast.word()).rates, [Trials::MOST_RATE, 0]);
    }
}
