//! The compact NUMA-aware lock: Dice and Kogan 2019, "Compact NUMA-aware Locks" (EuroSys).
//!
//! One word, as in the MCS lock: the last node of a queue. Before the holder hands over the lock,
//! it searches the queue for a thread of its NUMA node. The threads before that one move to a
//! second queue, the remote one, which waits until no thread of the NUMA node is left, or until the
//! lock has been handed over [`MOST`] times within the NUMA node. Then the remote queue goes back
//! to the front of the main queue.
//!
//! The lock itself does not know the remote queue. The word that hands over the lock contains the
//! address of the first node of the remote queue, and that node contains the address of the last
//! one.
//!
//! The paper ends the hand-overs within a NUMA node at random. Here they are counted, so the wait
//! of a remote thread is bounded. The paper also omits most searches at random while the remote
//! queue is empty. Here, after a short turn of a NUMA node, the next [`REST`] hand-overs omit the
//! search. A search in vain reads the node of each waiting thread, so it costs more than a short
//! turn gains.
//!
//! Addresses of nodes are multiples of 64. So a word that contains an address can also contain a
//! small number in its low bits.

#![expect(unsafe_code, reason = "links nodes by addresses, and relies on a lock")]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use consort_machine::{Line, Machine, Until, Word};

use super::RawLock;

/// The node's word with the address of the next node, plus the NUMA node of its thread, modulo 64;
/// 0 if there is none yet.
const NEXT: usize = 0;
/// The node's word that is 0 while its thread waits. It then holds the state of the lock.
///
/// | state | meaning |
/// | --- | --- |
/// | `n` below 64, plus an address or 0 | the lock has been handed over `n` times, this time included, since it came to this NUMA node; the address is that of the first node of the remote queue, if there is one |
/// | `64 * n` | the next `n` hand-overs omit the search, and the remote queue is empty |
const STATE: usize = 1;
/// The word of the first node of the remote queue with the address of the last one.
const LAST: usize = 2;

/// The bits of a word that an address leaves for a number.
const LOW: u64 = 63;
/// The lock is handed over this many times within a NUMA node while others wait. In loom models,
/// two threads of a NUMA node and one of another suffice to reach it.
const MOST: u64 = if cfg!(loom) { 2 } else { 63 };
/// A turn of a NUMA node is short up to this count.
const SHORT: u64 = 8;
/// The number of hand-overs that omit the search after a short turn.
const REST: u64 = if cfg!(loom) { 1 } else { 32 };
/// The state of a lock that has just come to a NUMA node, without a remote queue.
const FIRST: u64 = 1;

/// A compact NUMA-aware lock. Threads of one NUMA node take it in the order of arrival; after at
/// most 63 hand-overs, it goes to another node if threads wait there. Each thread waits at its own
/// line.
#[derive(Debug, Default)]
pub struct Cna {
    last: Word,
}

impl Cna {
    /// Creates a free lock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { last: Word::new(0) }
    }
}

/// Returns the node at an address that was read from a lock or from a node.
fn node(address: u64) -> &'static Line {
    // SAFETY: `last`, `LAST`, and `NEXT` and `STATE` without their numbers hold 0, which the
    // callers exclude, or addresses of nodes.
    unsafe { Line::at(address) }
}

/// Splits the state of the lock into the first node of the remote queue, or 0, and the number of
/// hand-overs within this NUMA node, or 0 if the next one omits the search.
const fn split(state: u64) -> (u64, u64) {
    match state & LOW {
        0 => (0, 0),
        count => (state & !LOW, count),
    }
}

/// Moves the threads of the main queue, from `first` on, to the remote queue `remote`, up to the
/// next thread whose NUMA node is `home`. Returns that thread's node and the first node of the
/// remote queue. If no thread of that NUMA node waits, all stay where they are.
async fn find<M: Machine>(m: &M, home: u64, first: u64, remote: u64) -> Option<(u64, u64)> {
    let (mut before, mut found) = (0, first);
    while found & LOW != home {
        before = found & !LOW;
        // Pairs with the release in `wait`: the thread of the next node waits.
        found = m.load(&node(before)[NEXT], Acquire).await;
        if found == 0 {
            return None;
        }
    }
    if before == 0 {
        return Some((found & !LOW, remote));
    }
    m.store(&node(before)[NEXT], 0, Relaxed).await;
    let remote = if remote == 0 {
        first & !LOW
    } else {
        let last = m.load(&node(remote)[LAST], Relaxed).await;
        m.store(&node(last)[NEXT], first, Relaxed).await;
        remote
    };
    m.store(&node(remote)[LAST], before, Relaxed).await;
    Some((found & !LOW, remote))
}

/// Returns the NUMA node of the calling thread, as a number in the low bits of an address.
fn home<M: Machine>(m: &M) -> u64 {
    u64::from(m.numa_node()) & LOW
}

/// Hands the lock over to the thread of the node `to`.
async fn hand_over<M: Machine>(m: &M, mine: &'static Line, to: u64, state: u64) {
    let word = &node(to)[STATE];
    m.store(word, state, Release).await; // pairs with the acquire of the wait
    m.wake(word);
    m.give_line(mine);
}

// SAFETY: a thread holds the lock if it found the queue empty, or once `STATE` of its node is not
// 0. Only the holder stores that, once, in its release. All waiting threads are in the main queue
// or in the remote one. Only the holder changes the remote queue and the order of the main one; it
// never changes the link of the last node of the main queue, which is for the next thread to
// arrive. The release of the store, or of the exchange that empties the queue, pairs with the
// acquire of the wait, or of the swap.
unsafe impl RawLock for Cna {
    const NAME: &'static str = "CNA";
    #[cfg(not(loom))]
    const NEW: Self = Self::new();

    /// The holder's node, and the state of the lock.
    type Token = (&'static Line, u64);
    /// The thread's node, and the address of its predecessor's.
    type WaitState = (&'static Line, u64);

    #[inline(always)]
    async fn enter<M: Machine>(&self, m: &M) -> Result<(&'static Line, u64), (&'static Line, u64)> {
        let mine = m.take_line();
        m.store(&mine[NEXT], 0, Relaxed).await;
        match m.swap(&self.last, mine.address(), AcqRel).await {
            0 => Ok((mine, FIRST)),
            before => Err((mine, before)),
        }
    }

    async fn wait<M: Machine>(
        &self,
        m: &M,
        (mine, before): (&'static Line, u64),
    ) -> Result<(&'static Line, u64), M::Stop> {
        m.store(&mine[STATE], 0, Relaxed).await;
        // Pairs with the acquire of the wait in `pass_on`, and with that in `find`.
        let next = &node(before)[NEXT];
        m.store(next, mine.address() | home(m), Release).await;
        m.wake(next);
        let state = m.wait_until(&mine[STATE], Until::Differs(0)).await?;
        Ok((mine, state))
    }

    #[inline]
    async fn try_acquire<M: Machine>(&self, m: &M) -> Option<(&'static Line, u64)> {
        let mine = m.take_line();
        m.store(&mine[NEXT], 0, Relaxed).await;
        if m.compare_exchange(&self.last, 0, mine.address(), AcqRel).await.is_ok() {
            return Some((mine, FIRST));
        }
        m.give_line(mine);
        None
    }

    async fn is_held<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.last, Relaxed).await != 0
    }

    #[inline(always)]
    async unsafe fn leave<M: Machine>(
        &self,
        m: &M,
        (mine, state): (&'static Line, u64),
    ) -> Result<(), (&'static Line, u64)> {
        if split(state).0 != 0 || m.load(&mine[NEXT], Relaxed).await != 0 {
            return Err((mine, state));
        }
        // Pairs with the acquire of the next holder's swap.
        let emptied = m.compare_exchange(&self.last, mine.address(), 0, Release).await;
        emptied.map(|_| m.give_line(mine)).map_err(|_| (mine, state))
    }

    async unsafe fn pass_on<M: Machine>(
        &self,
        m: &M,
        (mine, state): (&'static Line, u64),
    ) -> Result<(), M::Stop> {
        let (remote, count) = split(state);
        // The state if the turn of this NUMA node ends.
        let fresh = match count {
            0 if state > LOW + 1 => state - (LOW + 1),
            1..=SHORT => REST * (LOW + 1),
            _ => FIRST,
        };
        if remote != 0 && m.load(&mine[NEXT], Relaxed).await == 0 {
            // The remote queue becomes the main one. Pairs with the acquire of the next swap: the
            // link of the last node is 0, for the next thread to arrive.
            let last = m.load(&node(remote)[LAST], Relaxed).await;
            if m.compare_exchange(&self.last, mine.address(), last, Release).await.is_ok() {
                hand_over(m, mine, remote, fresh).await;
                return Ok(());
            }
        }
        let next = m.wait_until(&mine[NEXT], Until::Differs(0)).await?;
        let near = match (1..MOST).contains(&count) {
            true => find(m, home(m), next, remote).await,
            false => None,
        };
        let (to, state) = match near {
            Some((near, remote)) => (near, remote | (count + 1)),
            None if remote != 0 => {
                let last = m.load(&node(remote)[LAST], Relaxed).await;
                m.store(&node(last)[NEXT], next, Relaxed).await;
                (remote, fresh)
            }
            None => (next & !LOW, fresh),
        };
        hand_over(m, mine, to, state).await;
        Ok(())
    }
}
