//! The queued reader-writer lock of Linux (Long 2014, `qrwlock`), with an MCS lock as the queue, and
//! with upgradable reads.
//!
//! One word counts the readers and says whether there is a writer. A thread that may enter does so
//! at once: a reader adds itself, and a writer exchanges 0 for its bit. The others queue up. The
//! first in the queue checks the word for about a microsecond, and enters if the word stays open.
//! Otherwise it asks: it sets a bit that keeps all new threads out, waits until the threads inside
//! have left, enters, and makes the next thread the first. So no thread starves.
//!
//! If the word changes all the time, the first sleeps for a turn of 100 us before it asks, as in
//! `Handoff`: if threads alternated, each section would cost transfers of the line.
//!
//! | `state` | meaning |
//! | --- | --- |
//! | bit 63 | a writer is inside, or the upgradable reader waits to become one |
//! | bit 62 | an upgradable reader is inside: it excludes writers and other upgradable readers |
//! | bits 1 to 61 | the number of readers; some of them may be about to leave again |
//! | bit 0 | the first in the queue has asked |
//!
//! A reader adds itself before it knows whether it may enter, because checking first would cost one
//! more transfer of the line. If it may not, it leaves again. So an attempt to write may fail while
//! another thread tries to read.
//!
//! Because of the order of the bits, each wait is one comparison: it ends when the word is at most
//! a certain value.

#![expect(unsafe_code, reason = "relies on a lock for exclusive access")]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_machine::{Line, Machine, Until, Word};

use super::{Mcs, RawLock};

const WRITER: u64 = 1 << 63;
const UPGRADABLE: u64 = 1 << 62;
const READER: u64 = 2;
const ASKED: u64 = 1;

/// While the word is at most this, the upgradable reader that has set [`WRITER`] is alone.
const ALONE: u64 = WRITER | ASKED;

/// The word of a node that `Mcs` leaves to the holder, at which it sleeps during a turn.
const SLEEP: usize = 2;

/// Cycles of rest between two checks: the first rest, and the longest.
const FIRST_REST: u64 = 80;
const LONGEST_REST: u64 = 1_000;
/// Cycles of rest before a thread queues up, and before the first in the queue sleeps or asks. In
/// loom models it checks once.
const BEFORE_QUEUE: u64 = if cfg!(loom) { FIRST_REST } else { 2_000 };
const BEFORE_ASKING: u64 = if cfg!(loom) { FIRST_REST } else { 4_000 };
/// A thread that has waited enters if the lock was open at this many checks in a row.
const OPEN_CHECKS: u32 = if cfg!(loom) { 1 } else { 3 };
/// The lock is in rapid use if the word differed from the previous check at least this often.
const RAPID_CHANGES: u32 = 2;
/// The time after which the first in the queue asks if the use is rapid: a turn. 0 in loom models.
const TURN_NS: u64 = if cfg!(loom) { 0 } else { 100_000 };

/// The outcome of watching the word.
enum Watched {
    /// The thread is inside.
    Entered,
    /// The lock is in rapid use.
    Rapid,
    Slow,
}

/// How a thread uses the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads the data, together with other readers.
    Read,
    /// Reads the data together with other readers, and may become the writer.
    UpgradableRead,
    /// Uses the data exclusively.
    Write,
}

impl Access {
    /// Returns what a thread inside adds to the word.
    const fn share(self) -> u64 {
        match self {
            Self::Read => READER,
            Self::UpgradableRead => UPGRADABLE,
            Self::Write => WRITER,
        }
    }

    /// Returns the largest value of the word at which the thread that has asked may enter.
    const fn limit(self) -> u64 {
        match self {
            Self::Read => WRITER - 1,
            Self::UpgradableRead => UPGRADABLE - 1,
            Self::Write => ASKED,
        }
    }

    /// Returns whether a thread that has not asked may enter.
    const fn is_open(self, state: u64) -> bool {
        state & ASKED == 0 && state <= self.limit()
    }
}

/// Returns whether the word has just fallen to a bound that a sleeping thread may wait for.
const fn ends_a_wait(before: u64, after: u64) -> bool {
    const fn crosses(before: u64, after: u64, bound: u64) -> bool {
        before > bound && after <= bound
    }
    let asked = after & ASKED != 0
        && (crosses(before, after, Access::Read.limit())
            || crosses(before, after, Access::UpgradableRead.limit())
            || crosses(before, after, Access::Write.limit()));
    asked || after >= WRITER && crosses(before, after, ALONE)
}

/// A queued reader-writer lock: readers share it, a writer has it alone, and none starves.
#[derive(Debug, Default)]
pub struct QueuedRwLock {
    state: Word,
    /// Its holder is the first in the queue.
    queue: Mcs,
}

impl QueuedRwLock {
    /// Creates a free lock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { state: Word::new(0), queue: Mcs::new() }
    }

    /// Enters if no thread inside excludes this access and none has asked. Returns whether it did.
    /// It may fail while another thread tries to read.
    #[inline(always)]
    pub async fn try_enter<M: Machine>(&self, m: &M, access: Access) -> bool {
        let mut state = 0;
        while access.is_open(state) {
            let entered = state + access.share();
            match m.compare_exchange(&self.state, state, entered, Acquire).await {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Enters if that needs no wait. Returns whether it did; otherwise the thread must
    /// [`wait`](Self::wait).
    #[inline(always)]
    pub async fn enter<M: Machine>(&self, m: &M, access: Access) -> bool {
        // Both pair with the release in `change`.
        match access {
            Access::Read => access.is_open(m.fetch_add(&self.state, READER, Acquire).await),
            _ => m.compare_exchange(&self.state, 0, access.share(), Acquire).await.is_ok(),
        }
    }

    /// Waits until the calling thread is inside, after [`enter`](Self::enter) returned `false`.
    ///
    /// # Errors
    /// When the wait ends early: the lock is then lost.
    pub async fn wait<M: Machine>(&self, m: &M, access: Access) -> Result<(), M::Stop> {
        match access {
            // SAFETY: `enter` has added the thread to the readers, and the others count it as one.
            Access::Read => unsafe { self.change(m, access, None) }.await,
            Access::UpgradableRead if self.try_enter(m, access).await => return Ok(()),
            _ => {}
        }
        if let Watched::Entered = self.watch(m, access, BEFORE_QUEUE).await {
            return Ok(());
        }
        let mine = self.queue.acquire(m).await?;
        self.enter_as_first(m, access, mine).await?;
        // SAFETY: the thread holds the queue, with this token.
        unsafe { self.queue.release(m, mine) }.await
    }

    /// Waits until the calling thread, the first in the queue, is inside.
    async fn enter_as_first<M: Machine>(
        &self,
        m: &M,
        access: Access,
        mine: &'static Line,
    ) -> Result<(), M::Stop> {
        let turn_ends = m.now_ns() + TURN_NS;
        match self.watch(m, access, BEFORE_ASKING).await {
            Watched::Entered => return Ok(()),
            Watched::Rapid if m.now_ns() < turn_ends => {
                m.store(&mine[SLEEP], 0, Relaxed).await;
                m.wait_until_time(&mine[SLEEP], Until::Equals(1), turn_ends).await?;
            }
            _ => {}
        }
        self.ask(m, access).await
    }

    /// Checks the word after ever longer rests, for `cycles` cycles of rest, and enters once it was
    /// open at several checks in a row.
    async fn watch<M: Machine>(&self, m: &M, access: Access, cycles: u64) -> Watched {
        let (mut rest, mut rested) = (FIRST_REST, 0);
        let (mut open, mut changes, mut before) = (0, 0, m.load(&self.state, Relaxed).await);
        while rested < cycles {
            m.pause(rest).await;
            let state = m.load(&self.state, Relaxed).await;
            changes += u32::from(state != before);
            before = state;
            open = if access.is_open(state) { open + 1 } else { 0 };
            if open >= OPEN_CHECKS && self.try_enter(m, access).await {
                return Watched::Entered;
            }
            rested += rest;
            rest = (2 * rest).min(LONGEST_REST);
        }
        if changes >= RAPID_CHANGES { Watched::Rapid } else { Watched::Slow }
    }

    /// Keeps newcomers out and enters, as the first in the queue.
    async fn ask<M: Machine>(&self, m: &M, access: Access) -> Result<(), M::Stop> {
        m.fetch_add(&self.state, ASKED, Relaxed).await;
        loop {
            let state = m.wait_until(&self.state, Until::AtMost(access.limit())).await?;
            let entered = state + access.share() - ASKED;
            // Pairs with the release in `change`.
            if m.compare_exchange(&self.state, state, entered, Acquire).await.is_ok() {
                return Ok(());
            }
        }
    }

    /// Changes to an access that excludes fewer threads, or leaves the lock.
    ///
    /// # Safety
    /// The calling thread is inside, with the access `from`; `to` excludes no thread that `from`
    /// does not exclude.
    #[inline(always)]
    pub async unsafe fn change<M: Machine>(&self, m: &M, from: Access, to: Option<Access>) {
        let by = to.map_or(0, Access::share).wrapping_sub(from.share());
        // Pairs with the acquire of the next thread that enters.
        let before = m.fetch_add(&self.state, by, Release).await;
        let after = before.wrapping_add(by);
        if after & ASKED != 0 || after >= WRITER {
            self.wake(m, before, after);
        }
    }

    /// Wakes the threads that may go on after this change of the word.
    #[cold]
    fn wake<M: Machine>(&self, m: &M, before: u64, after: u64) {
        if ends_a_wait(before, after) {
            m.wake(&self.state);
        }
    }

    /// Makes the upgradable reader the writer, once the readers have left.
    ///
    /// # Errors
    /// When the wait ends early: the lock is then lost.
    ///
    /// # Safety
    /// The calling thread is inside, with [`Access::UpgradableRead`].
    pub async unsafe fn upgrade<M: Machine>(&self, m: &M) -> Result<(), M::Stop> {
        m.fetch_add(&self.state, WRITER - UPGRADABLE, Relaxed).await;
        m.wait_until(&self.state, Until::AtMost(ALONE)).await?;
        Ok(())
    }

    /// Makes the upgradable reader the writer if there are no readers. Returns whether it did.
    ///
    /// # Safety
    /// The calling thread is inside, with [`Access::UpgradableRead`].
    pub async unsafe fn try_upgrade<M: Machine>(&self, m: &M) -> bool {
        let mut state = UPGRADABLE;
        while state <= UPGRADABLE | ASKED {
            let upgraded = state + (WRITER - UPGRADABLE);
            // Pairs with the release in `change`.
            match m.compare_exchange(&self.state, state, upgraded, Acquire).await {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Returns whether a thread is inside at present.
    pub async fn is_held<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.state, Relaxed).await > ASKED
    }

    /// Returns whether a writer is inside at present.
    pub async fn is_held_by_writer<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.state, Relaxed).await >= WRITER
    }
}
