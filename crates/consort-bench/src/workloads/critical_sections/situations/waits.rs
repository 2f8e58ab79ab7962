//! The waits of a thread: their number by length, with a relative error of 3 %, and the longest.

use std::time::{Duration, Instant};

/// Each power of two has this many ranges of equal length.
const PARTS: u64 = 32;

/// Waits by length.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    counts: Vec<u64>,
    longest_ns: u64,
}

impl Default for Waits {
    fn default() -> Self {
        Self { counts: vec![0; usize::try_from(64 * PARTS).unwrap_or(0)], longest_ns: 0 }
    }
}

/// Returns the range of a time.
fn range(ns: u64) -> usize {
    let range = if ns < PARTS {
        ns
    } else {
        let power = u64::from(ns.ilog2() - PARTS.ilog2());
        PARTS * (power + 1) + (ns >> power) - PARTS
    };
    usize::try_from(range).unwrap_or(usize::MAX)
}

/// Returns the shortest time of a range.
fn shortest(range: usize) -> u64 {
    let range = range as u64;
    if range < PARTS {
        return range;
    }
    let power = range / PARTS - 1;
    (PARTS + range % PARTS) << power
}

impl Waits {
    fn add(&mut self, wait: Duration) {
        let ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.counts[range(ns)] += 1;
        self.longest_ns = self.longest_ns.max(ns);
    }

    pub(super) fn add_all(&mut self, others: &Self) {
        self.counts.iter_mut().zip(&others.counts).for_each(|(count, other)| *count += other);
        self.longest_ns = self.longest_ns.max(others.longest_ns);
    }

    pub(super) const fn longest_ns(&self) -> u64 {
        self.longest_ns
    }

    /// Returns the time that a share of the waits, such as 0.99, does not exceed; 0 if there is no
    /// wait.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a count"
    )]
    pub(super) fn quantile_ns(&self, share: f64) -> u64 {
        let all: u64 = self.counts.iter().sum();
        let mut left = (all as f64 * share).ceil().max(1.0) as u64;
        for (range, &count) in self.counts.iter().enumerate() {
            if left <= count {
                return shortest(range);
            }
            left -= count;
        }
        0
    }
}

/// Times waits, if it is switched on.
#[derive(Debug, Default)]
pub(super) struct Timer {
    is_on: bool,
    pub(super) waits: Waits,
}

impl Timer {
    pub(super) fn new(is_on: bool) -> Self {
        Self { is_on, waits: Waits::default() }
    }

    /// Begins a wait.
    #[inline(always)]
    pub(super) fn begin(&self) -> Option<Instant> {
        self.is_on.then(Instant::now)
    }

    /// Ends a wait.
    #[inline(always)]
    pub(super) fn end(&mut self, begun: Option<Instant>) {
        if let Some(begun) = begun {
            self.waits.add(begun.elapsed());
        }
    }
}
