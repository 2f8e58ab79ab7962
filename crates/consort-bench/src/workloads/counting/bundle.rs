//! A ball of up to 24 bytes passes between two PEs: by counting puts, and by handwritten loops that
//! bundle the data with its count in one line.
//!
//! Source: Dinan et al. (2014), section 2: only the counted operation need be complete. So a
//! message may carry data and count, and the receiver, or the sender in a fence, stores the data at
//! its target and counts it. The PE that does so claims the bundle first, so that only one PE does
//! it.
//!
//! | method | lines that travel |
//! | --- | --- |
//! | counted put | the data and the count, by [`CompletionCounter`](consort::symmetric::CompletionCounter) |
//! | two lines | the same, handwritten |
//! | bundle | one for each direction |
//! | both in one | one for both directions |

use std::{
    hint::spin_loop,
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    thread,
    time::Instant,
};

use consort::{Rank, Result, Team};

use super::{ping_pong::PingPongProgram, program::Program};

const WORDS: usize = 3;
pub(super) const MOST_BYTES: usize = 8 * WORDS;
/// The processor is yielded once in this many polls, in case the two share one.
const POLLS_PER_YIELD: u32 = 1 << 14;

/// The state of a bundle, in the low bits of its first word; the others number it.
const DONE: u64 = 0;
const PENDING: u64 = 1;
const CLAIMED: u64 = 2;
const STATES: u64 = 4;

/// A pair of cache lines, because some processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Line([AtomicU64; 8]);

/// The memory of the handwritten loops. Each array has a place for each PE.
#[derive(Default)]
pub(super) struct Lines {
    data: [Line; 2],
    counts: [Line; 2],
    bundles: [Line; 2],
    both: Line,
}

impl Lines {
    /// Returns the bundle for a PE: its state, and its data.
    fn bundle(&self, to: Rank, is_shared: bool) -> (&AtomicU64, &[AtomicU64]) {
        let words = if is_shared {
            &self.both.0[4 * to.index()..][..1 + WORDS]
        } else {
            &self.bundles[to.index()].0[..1 + WORDS]
        };
        (&words[0], &words[1..])
    }
}

/// Polls until there is a value, and returns it.
fn wait<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    for polls in 1_u32.. {
        if let Some(value) = poll() {
            return value;
        }
        spin_loop();
        if polls.is_multiple_of(POLLS_PER_YIELD) {
            thread::yield_now();
        }
    }
    unreachable!("a PE's job fails before it has polled so often")
}

pub(super) struct Bundle<'p> {
    counted: PingPongProgram,
    lines: &'p Lines,
    me: Rank,
    peer: Rank,
    /// The number of balls that have arrived by handwritten loops.
    received: u64,
}

impl<'p> Bundle<'p> {
    /// Allocates the state. Collective.
    pub(super) fn new(world: &Team, lines: &'p Lines) -> Result<Self> {
        let counted = PingPongProgram::new(world, MOST_BYTES)?;
        Ok(Self { counted, lines, me: world.rank(), peer: world.right(), received: 0 })
    }

    fn send(&self, method: usize, ball: &[u64]) {
        let store = |place: &[AtomicU64]| {
            for (word, &value) in place.iter().zip(ball) {
                word.store(value, Relaxed);
            }
        };
        if method == 1 {
            store(&self.lines.data[self.peer.index()].0);
            // Release: pairs with the Acquire of the receiver's poll, here and below.
            self.lines.counts[self.peer.index()].0[0].fetch_add(1, Release);
        } else {
            let (state, data) = self.lines.bundle(self.peer, method == 3);
            let number = state.load(Acquire) / STATES * STATES;
            store(data);
            state.store(number + STATES + PENDING, Release);
        }
    }

    /// Waits until another ball has arrived, and takes it from its place.
    fn receive(&mut self, method: usize, ball: &mut [u64]) {
        self.received += 1;
        let count = self.received;
        let (place, counts) =
            (&self.lines.data[self.me.index()].0, &self.lines.counts[self.me.index()].0[0]);
        if method == 1 {
            wait(|| (counts.load(Acquire) >= count).then_some(()));
        } else {
            let (state, data) = self.lines.bundle(self.me, method == 3);
            // The count is checked as well, because others may add to it directly.
            let pending = wait(|| {
                let now = state.load(Acquire);
                let is_there = now % STATES == PENDING || counts.load(Relaxed) >= count;
                is_there.then_some(now)
            });
            let claimed = pending - PENDING + CLAIMED;
            let won = state.compare_exchange(pending, claimed, Acquire, Relaxed).is_ok();
            assert!(won, "the sender claims nothing here");
            for (place, word) in place.iter().zip(data).take(ball.len()) {
                place.store(word.load(Relaxed), Relaxed);
            }
            counts.fetch_add(1, Relaxed);
            state.store(claimed - CLAIMED + DONE, Release);
        }
        for (word, place) in ball.iter_mut().zip(place) {
            *word = place.load(Relaxed);
        }
    }
}

impl Program for Bundle<'_> {
    fn round_ns(&mut self, method: usize, bytes: usize, rounds: u32) -> Result<f64> {
        if method == 0 {
            return self.counted.round_ns(0, bytes, rounds);
        }
        let mut ball = [0; WORDS];
        let ball = &mut ball[..bytes.div_ceil(8)];
        let begun = Instant::now();
        for turn in 0..2 * rounds {
            if Rank(turn % 2) == self.me {
                self.send(method, ball);
            } else {
                self.receive(method, ball);
                assert!(ball.iter().all(|&word| word == u64::from(turn)), "the ball is {ball:?}");
                ball.fill(u64::from(turn) + 1);
            }
        }
        Ok(begun.elapsed().as_secs_f64() * 1e9 / f64::from(2 * rounds))
    }
}
