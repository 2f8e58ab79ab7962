//! The tally of a thread: its operations, and its stalls by cause.

use std::ops::Sub;

use crate::engine::Time;

/// The causes for which a core stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stall {
    /// A line or an atomic operation that another cache or the memory must serve.
    Coherence,
    /// Stores that a fence waits for.
    Fence,
    /// A store buffer, or write-combining buffers, without a free entry.
    StoreBuffer,
}

impl Stall {
    /// All causes.
    pub const EVERY: [Self; 3] = [Self::Coherence, Self::Fence, Self::StoreBuffer];
}

/// The tally of a thread. A *remote reference* is a read without a copy of the line, a write
/// without a writable copy, or an atomic operation that another tile or cache must serve (Petrović
/// 2015, section 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations of the program, as it counts them.
    pub operations: u64,
    /// The total time of these operations.
    pub(super) operating: Time,
    pub(super) stalled: [Time; Stall::EVERY.len()],
    /// The time spent waiting for a word, a message or room.
    pub(super) idle: Time,
    /// Reads without a copy of the line, and without a fetch in progress.
    pub remote_reads: u64,
    /// Writes without a writable copy.
    pub remote_writes: u64,
    /// Atomic operations that were executed elsewhere or fetched their line.
    pub remote_atomics: u64,
    /// Lines that the prefetcher fetched.
    pub prefetched: u64,
    /// Atomic operations of all kinds.
    pub atomics: u64,
    /// Compare-exchanges.
    pub exchanges: u64,
    /// Compare-exchanges that failed.
    pub failed_exchanges: u64,
    /// Sent messages and answers.
    pub messages: u64,
}

impl Tally {
    /// Returns the time of stalls for a cause, in nanoseconds.
    #[must_use]
    pub fn stalled_ns(&self, cause: Stall) -> f64 {
        self.stalled[cause as usize] as f64 / 1e3
    }

    /// Returns the time of all stalls, in nanoseconds.
    #[must_use]
    pub fn all_stalled_ns(&self) -> f64 {
        Stall::EVERY.into_iter().map(|cause| self.stalled_ns(cause)).sum()
    }

    /// Returns the time spent waiting for a word, a message or room, in nanoseconds.
    #[must_use]
    pub fn idle_ns(&self) -> f64 {
        self.idle as f64 / 1e3
    }

    /// Returns the mean time of an operation of the program, in nanoseconds.
    #[must_use]
    pub fn latency_ns(&self) -> f64 {
        self.operating as f64 / 1e3 / self.operations as f64
    }

    /// Returns the number of all remote references.
    #[must_use]
    pub const fn remote(&self) -> u64 {
        self.remote_reads + self.remote_writes + self.remote_atomics
    }
}

impl Sub for Tally {
    type Output = Self;

    /// Returns the tally since `before`.
    fn sub(self, before: Self) -> Self {
        Self {
            operations: self.operations - before.operations,
            operating: self.operating - before.operating,
            stalled: std::array::from_fn(|cause| self.stalled[cause] - before.stalled[cause]),
            idle: self.idle - before.idle,
            remote_reads: self.remote_reads - before.remote_reads,
            remote_writes: self.remote_writes - before.remote_writes,
            remote_atomics: self.remote_atomics - before.remote_atomics,
            prefetched: self.prefetched - before.prefetched,
            atomics: self.atomics - before.atomics,
            exchanges: self.exchanges - before.exchanges,
            failed_exchanges: self.failed_exchanges - before.failed_exchanges,
            messages: self.messages - before.messages,
        }
    }
}
