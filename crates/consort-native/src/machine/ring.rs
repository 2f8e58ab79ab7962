//! A thread's incoming messages: a ring of cache lines with many senders and one receiver (Vyukov
//! 2010).
//!
//! Line `n` of all that ever come is line `n mod CAPACITY` of the ring. Its last word is its state:
//!
//! | last word | line `n` |
//! | --- | --- |
//! | `2 (n / CAPACITY)` | is free |
//! | `2 (n / CAPACITY) + 1` | is full |
//!
//! A sender takes numbers for all lines of its message by one atomic addition, so the lines are
//! consecutive. It waits until they are free and fills them. It publishes the first one last, so a
//! receiver that finds it full has the whole message. The receiver empties lines in order. Cost:
//! one addition, and the transfers of the lines.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_fabric::{Line, Word};

/// Lines of a ring; few in a model.
const CAPACITY: usize = if cfg!(loom) { 2 } else { 64 };
/// Words of a line that carry data.
pub(crate) const LINE_WORDS: usize = 7;

/// The ring.
#[derive(Debug)]
pub struct Ring {
    /// Word 0: the lines that senders have taken so far.
    taken: Line,
    lines: Box<[Line]>,
}

impl Default for Ring {
    fn default() -> Self {
        Self { taken: Line::new(), lines: (0..CAPACITY).map(|_| Line::new()).collect() }
    }
}

impl Ring {
    /// The most words of a message.
    pub const MOST_WORDS: usize = CAPACITY * LINE_WORDS;

    /// The lines of a message of `words`.
    #[must_use]
    pub const fn lines_for(words: usize) -> u64 {
        let lines = words.div_ceil(LINE_WORDS);
        if lines == 0 { 1 } else { lines as u64 }
    }

    /// Takes this many consecutive lines, and returns the number of the first. At most as many as
    /// there are.
    #[inline]
    pub fn take(&self, lines: u64) -> u64 {
        self.taken[0].atomic().fetch_add(lines, Relaxed)
    }

    fn line(&self, number: u64) -> &Line {
        &self.lines[usize::try_from(number % CAPACITY as u64).unwrap_or(0)]
    }

    const fn state_if_free(number: u64) -> u64 {
        number / CAPACITY as u64 * 2
    }

    /// The word that changes when a line becomes free or full.
    #[inline]
    #[must_use]
    pub fn state(&self, number: u64) -> &Word {
        &self.line(number)[LINE_WORDS]
    }

    /// Whether a sender may fill this line.
    #[inline]
    #[must_use]
    pub fn is_free(&self, number: u64) -> bool {
        // Pairs with the release in `empty`.
        self.state(number).atomic().load(Acquire) == Self::state_if_free(number)
    }

    /// Fills a free line that the caller has taken with at most seven words.
    #[inline]
    pub fn fill(&self, number: u64, words: &[u64]) {
        for (word, &value) in self.line(number).iter().zip(words) {
            word.atomic().store(value, Relaxed);
        }
    }

    /// Lets the receiver have a line that is filled.
    #[inline]
    pub fn publish(&self, number: u64) {
        // Pairs with the acquire in `is_full`.
        self.state(number).atomic().store(Self::state_if_free(number) + 1, Release);
    }

    /// Whether the receiver may read this line.
    #[inline]
    #[must_use]
    pub fn is_full(&self, number: u64) -> bool {
        // Pairs with the release in `publish`.
        self.state(number).atomic().load(Acquire) == Self::state_if_free(number) + 1
    }

    /// The words of a full line.
    #[inline]
    #[must_use]
    pub fn read(&self, number: u64) -> [u64; LINE_WORDS] {
        let line = self.line(number);
        std::array::from_fn(|index| line[index].atomic().load(Relaxed))
    }

    /// Frees a full line for the next turn.
    #[inline]
    pub fn empty(&self, number: u64) {
        // Pairs with the acquire in `is_free`.
        self.state(number).atomic().store(Self::state_if_free(number) + 2, Release);
    }
}
