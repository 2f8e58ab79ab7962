//! Decides when a thread leaves a processor that it shares with a thread that it waits for.
//!
//! On a busy machine the system may move two such threads to one processor. It leaves them there,
//! because all processors are equally busy.
//!
//! | the threads are | a barrier takes |
//! | --- | --- |
//! | on one processor | two context switches |
//! | on different processors, at the same time | two transfers of a cache line |
//! | on different processors, but rarely at the same time, because both are busy | switches of milliseconds |
//!
//! So a thread compares its progress in two periods. It is apart from its move until the system has
//! moved it back. It is on the shared processor from then until its next move. The comparison
//! determines how long it stays there the next time:
//!
//! | apart, it was | the next stay on the shared processor |
//! | --- | --- |
//! | clearly slower | twice as long as before (exponential backoff), and at least 8 times as long as the thread was apart; so it loses only a small part of its time |
//! | not clearly slower | half as long |

use std::time::{Duration, Instant};

use crate::affinity::{self, CpuId, Pinned};

/// The shortest and the longest time that a thread stays on a shared processor after a move. A move
/// takes some 20 us.
const STAYS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(1024)];

/// If a thread was slower apart, it stays for at least this many times as long as it was apart.
const REGRET: u32 = 8;

/// The progress at a time.
#[derive(Clone, Copy, Debug)]
struct Point {
    time: Instant,
    steps: u64,
}

/// The moves of a thread, or of threads of which one at a time moves.
#[derive(Clone, Copy, Debug)]
pub struct Moves {
    /// When a thread last moved; `None` before the first move.
    moved: Option<Point>,
    /// When a thread first shared a processor again.
    shared: Option<Point>,
    /// How long it then stays.
    stay: Duration,
}

impl Default for Moves {
    fn default() -> Self {
        Self::new()
    }
}

impl Moves {
    /// Returns the state before the first move.
    #[must_use]
    pub const fn new() -> Self {
        Self { moved: None, shared: None, stay: STAYS[0] }
    }

    /// Moves the calling thread, which shares its processor with a thread for which it waits, to a
    /// processor for which `is_free` holds. Returns the processor; `None` if it is too early for a
    /// move, or no allowed processor is free. `steps` is the progress of the threads so far.
    ///
    /// The system may move the thread again later, to any processor that was allowed before.
    pub fn leave(&mut self, steps: u64, is_free: impl Fn(CpuId) -> bool) -> Option<CpuId> {
        if !self.is_due(Point { time: Instant::now(), steps }) {
            return None;
        }
        let free = affinity::find_allowed(is_free);
        // Dropping it lets the thread run on all its processors again.
        free.filter(|&free| Pinned::new(free).is_ok())
    }

    /// Returns whether a thread that shares a processor now should move, and if so, records a move.
    fn is_due(&mut self, now: Point) -> bool {
        if let Some(moved) = self.moved {
            let shared = *self.shared.get_or_insert(now);
            if now.time - shared.time < self.stay {
                return false;
            }
            let [shortest, longest] = STAYS;
            self.stay = if is_clearly_slower([moved, shared], [shared, now]) {
                (self.stay * 2).max((shared.time - moved.time) * REGRET).min(longest)
            } else {
                (self.stay / 2).max(shortest)
            };
        }
        (self.moved, self.shared) = (Some(now), None);
        true
    }
}

/// Returns whether each unit of time brought less than half as much progress in `one` as in `other`.
/// Apart, most steps are short and a few take long, so the mean over a short time may be far off.
fn is_clearly_slower(one: [Point; 2], other: [Point; 2]) -> bool {
    let steps = |[from, to]: [Point; 2]| u128::from(to.steps.saturating_sub(from.steps));
    let ns = |[from, to]: [Point; 2]| (to.time - from.time).as_nanos();
    2 * steps(one) * ns(other) < steps(other) * ns(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves, is apart for 2 ms, and then shares a processor until the next move. The rates are
    /// in steps a millisecond. Returns the milliseconds until that move.
    fn stay_after(moves: &mut Moves, now: &mut Point, apart: u64, together: u64) -> u128 {
        let mut pass = |ms: u64, rate: u64| {
            now.time += Duration::from_millis(ms);
            now.steps += ms * rate;
            *now
        };
        let begun = pass(2, apart);
        assert!(!moves.is_due(begun), "it has to see how fast it is here");
        loop {
            let now = pass(1, together);
            if moves.is_due(now) {
                return (now.time - begun.time).as_millis();
            }
        }
    }

    #[test]
    fn thread_moves_rarely_if_it_is_clearly_slower_apart() {
        let mut now = Point { time: Instant::now(), steps: 0 };
        let mut moves = Moves::new();
        assert!(moves.is_due(now), "the first time");
        let slower: Vec<_> = (0..9).map(|_| stay_after(&mut moves, &mut now, 1, 20)).collect();
        assert_eq!(slower, [1, 16, 32, 64, 128, 256, 512, 1024, 1024]);
        let similar: Vec<_> = (0..12).map(|_| stay_after(&mut moves, &mut now, 11, 20)).collect();
        assert_eq!(similar, [1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1]);
    }
}
