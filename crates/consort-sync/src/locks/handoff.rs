//! A lock that lets threads barge for a while and then hands itself over: the scheme of Linux's
//! mutexes since 2016 (Long), with an MCS lock as the queue.
//!
//! The lock is taken by whoever finds it free, which is fast: the holder often is the one that had
//! it before, and has lock and data in its cache. The others queue up. The first of the queue looks
//! at the lock now and then, and takes it if it is free and not in rapid use: to take turns at each
//! section would cost both threads a transfer of the line. After some microseconds it asks for the
//! lock, and the holder then hands it over. So a thread waits for a turn of each thread before it,
//! and nobody starves.
//!
//! The word `state` has the bits `HELD` and `ASKED`, and above them the number of releases so far,
//! which says how rapidly the lock is used.
//!
//! | bits | what |
//! | --- | --- |
//! | none | the lock is free |
//! | `HELD` | somebody holds it |
//! | `HELD` and `ASKED` | the first of the queue, at `first`, is to get it |

#![expect(unsafe_code, reason = "nodes are linked by addresses, and a lock is trusted to exclude")]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_fabric::{Line, Machine, Until, Word};

use super::{Mcs, RawLock};

const HELD: u64 = 1;
const ASKED: u64 = 2;
/// One release, in `state`.
const RELEASE: u64 = 4;

/// The word of a node, which `Mcs` leaves to the holder, that is 1 once its thread has the lock.
const HANDED: usize = 2;

/// The first rest between two looks at the lock, the longest of a thread that has not queued up
/// yet, and that of the first of the queue, in cycles.
const FIRST_REST: u64 = 80;
const LONGEST_BEFORE: u64 = if cfg!(loom) { FIRST_REST / 2 } else { 1_000 };
const LONGEST_REST: u64 = 4_000;
/// Cycles of rest after which the first of the queue asks for the lock: a turn. In a model it looks
/// once.
const TURN: u64 = if cfg!(loom) { FIRST_REST } else { 60_000 };
/// The lock is in rapid use if it is released more often than once in so many cycles, the time of
/// some transfers of a line.
const RAPID: u64 = 400;

/// A lock that is taken by who comes while it is free, but for at most a turn of some microseconds
/// while others wait. No thread starves.
#[derive(Debug, Default)]
pub struct Handoff {
    state: Word,
    /// Who holds it is the first of the queue.
    queue: Mcs,
    /// The node of the thread that has asked.
    first: Word,
}

impl Handoff {
    /// Takes the lock if it is free. Returns its state before that.
    #[inline(always)]
    async fn take<M: Machine>(&self, m: &M) -> Option<u64> {
        let state = m.load(&self.state, Relaxed).await;
        if state & HELD != 0 {
            return None;
        }
        m.compare_exchange(&self.state, state, state | HELD, Acquire).await.ok()
    }

    /// Looks at the lock after ever longer rests, up to `longest`, and takes it if it is free and
    /// not in rapid use. `None` after rests of `cycles`.
    async fn watch<M: Machine>(&self, m: &M, longest: u64, cycles: u64) -> Option<u64> {
        let (mut rest, mut rested) = (FIRST_REST, 0);
        let mut last = m.load(&self.state, Relaxed).await;
        while rested < cycles {
            m.pause(rest).await;
            rested += rest;
            let state = m.load(&self.state, Relaxed).await;
            let releases = (state.wrapping_sub(last)) / RELEASE;
            if state & HELD == 0
                && releases.saturating_mul(RAPID) <= rest.max(RAPID)
                && let Some(taken) = self.take(m).await
            {
                return Some(taken);
            }
            last = state;
            rest = (2 * rest).min(longest);
        }
        None
    }

    /// Waits for the lock as the first of the queue. Returns its state without `HELD`.
    async fn take_as_first<M: Machine>(&self, m: &M, mine: &'static Line) -> Result<u64, M::Stop> {
        if let Some(taken) = self.watch(m, LONGEST_REST, TURN).await {
            return Ok(taken);
        }
        m.store(&mine[HANDED], 0, Relaxed).await;
        m.store(&self.first, mine.address(), Relaxed).await;
        loop {
            let state = m.load(&self.state, Relaxed).await;
            let (new, order) =
                if state & HELD == 0 { (state | HELD, Acquire) } else { (state | ASKED, Release) };
            // The release pairs with the acquire in `pass_on`.
            if m.compare_exchange(&self.state, state, new, order).await.is_ok() {
                if state & HELD == 0 {
                    return Ok(state);
                }
                m.wait_until(&mine[HANDED], Until::Equals(1)).await?;
                return Ok(m.load(&self.state, Relaxed).await & !HELD);
            }
        }
    }
}

// SAFETY: a thread holds the lock if it set `HELD`, or once the holder has set its `HANDED`. Only
// the holder clears `HELD`, or sets `HANDED`, and only one thread, the holder of the queue, can
// have asked. The release of either store pairs with the acquire of the exchange, or
// of the wait.
unsafe impl RawLock for Handoff {
    const NAME: &'static str = "handoff";
    const BARGES: bool = true;
    #[cfg(not(loom))]
    const NEW: Self = Self { state: Word::new(0), queue: Mcs::NEW, first: Word::new(0) };

    /// The state without `HELD`.
    type Token = u64;
    type Place = ();

    #[inline(always)]
    async fn enter<M: Machine>(&self, m: &M) -> Result<u64, ()> {
        self.take(m).await.ok_or(())
    }

    async fn wait<M: Machine>(&self, m: &M, (): ()) -> Result<u64, M::Stop> {
        if let Some(taken) = self.watch(m, LONGEST_BEFORE, 2 * LONGEST_BEFORE).await {
            return Ok(taken);
        }
        let mine = self.queue.acquire(m).await?;
        let taken = self.take_as_first(m, mine).await?;
        // SAFETY: the thread holds the queue, with this token.
        unsafe { self.queue.release(m, mine) }.await?;
        Ok(taken)
    }

    #[inline(always)]
    async fn try_acquire<M: Machine>(&self, m: &M) -> Option<u64> {
        self.take(m).await
    }

    async fn is_held<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.state, Relaxed).await & HELD != 0
    }

    #[inline(always)]
    async unsafe fn leave<M: Machine>(&self, m: &M, taken: u64) -> Result<(), u64> {
        let free = taken.wrapping_add(RELEASE);
        // Pairs with the acquire in `take`.
        let freed = m.compare_exchange(&self.state, taken | HELD, free, Release).await;
        freed.map(|_| ()).map_err(|_| taken)
    }

    /// Hands the lock over to the thread that has asked.
    async unsafe fn pass_on<M: Machine>(&self, m: &M, taken: u64) -> Result<(), M::Stop> {
        m.fence(Acquire).await; // pairs with the release of the exchange that sets `ASKED`
        // SAFETY: who asks stores the address of its node before it sets `ASKED`.
        let first = unsafe { Line::at(m.load(&self.first, Relaxed).await) };
        m.store(&self.state, taken.wrapping_add(RELEASE) | HELD, Relaxed).await;
        m.store(&first[HANDED], 1, Release).await; // pairs with the acquire of the wait
        m.wake(&first[HANDED]);
        Ok(())
    }
}
