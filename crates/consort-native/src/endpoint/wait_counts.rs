//! Counts the pauses of a PE's waits, for programs and profiles.
//!
//! Only pauses are counted, and pauses are rare. A wait that polling ends is not counted, so it
//! takes no additional instruction.

use std::{ops::AddAssign, time::Duration};

/// The pauses of a PE's waits so far: how often it polled, yielded and slept, and for how long.
///
/// A wait first polls, for some 50 microseconds at most. Only if that does not end it, the wait
/// pauses and is counted. To measure the time of shorter waits too, use `consort profile`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// The waits that paused.
    pub paused: u64,
    /// The polls of these waits, up to the last pause of each.
    pub polls: u64,
    /// How often a wait yielded the core.
    pub yields: u64,
    /// How often a wait slept.
    pub sleeps: u64,
    /// The time from the first pause of each wait to its end.
    pub time: Duration,
    /// The part of the time that yields took, in which other threads could run.
    pub yielding: Duration,
    /// The part of the time in which the PE slept.
    pub sleeping: Duration,
}

impl Waits {
    pub(super) fn note_yield(&mut self, took: Duration) {
        self.yields += 1;
        self.yielding += took;
    }

    pub(super) fn note_sleep(&mut self, took: Duration) {
        self.sleeps += 1;
        self.sleeping += took;
    }
}

impl AddAssign for Waits {
    fn add_assign(&mut self, other: Self) {
        let Self { paused, polls, yields, sleeps, time, yielding, sleeping } = other;
        self.paused += paused;
        self.polls += polls;
        self.yields += yields;
        self.sleeps += sleeps;
        self.time += time;
        self.yielding += yielding;
        self.sleeping += sleeping;
    }
}
