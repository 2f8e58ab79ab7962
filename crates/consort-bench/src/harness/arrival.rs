//! The arrival of PEs at a call: together, or each after random work.

use std::{
    hint::spin_loop,
    time::{Duration, Instant},
};

use consort::{Rank, tune::Arrival};

use crate::rng::Rng;

/// A skewed PE works for a random time below this many nanoseconds before each call.
pub const SKEW_NS: u64 = 2000;

/// One PE's work between calls. Its durations are the same in every session.
pub(super) struct Delays {
    arrival: Arrival,
    rng: Rng,
}

impl Delays {
    pub(super) fn new(arrival: Arrival, rank: Rank) -> Self {
        Self { arrival, rng: Rng(u64::from(rank.0) << 32) }
    }

    /// Works, and returns the time in nanoseconds.
    #[inline]
    pub(super) fn work(&mut self) -> u64 {
        if self.arrival == Arrival::Together {
            return 0;
        }
        let ns = self.rng.below(SKEW_NS);
        let start = Instant::now();
        while start.elapsed() < Duration::from_nanos(ns) {
            spin_loop();
        }
        ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_spread_and_differ_between_pes() {
        let lengths = |rank| {
            let mut delays = Delays::new(Arrival::Skewed, Rank(rank));
            (0..1000).map(|_| delays.rng.below(SKEW_NS)).collect::<Vec<u64>>()
        };
        let mean = lengths(0).iter().sum::<u64>() / 1000;
        assert!((SKEW_NS * 4 / 10..SKEW_NS * 6 / 10).contains(&mean), "{mean}");
        assert!(lengths(1).iter().all(|&ns| ns < SKEW_NS));
        assert_ne!(lengths(0), lengths(1));
        assert_eq!(lengths(2), lengths(2));
    }

    #[test]
    fn arrival_together_has_no_delay() {
        assert_eq!(Delays::new(Arrival::Together, Rank(3)).work(), 0);
    }
}
