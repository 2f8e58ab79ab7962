//! Accounts of the virtual time of PEs, by cause.

use std::cell::Cell;

use crate::engine::Time;

/// The causes for which a PE spends time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Reading and writing its own memory, off the chip.
    OffChip,
    /// Moving data between caches or message buffers, and across a network.
    OnChip,
    /// Setting and reading flags.
    Flags,
    /// Queueing for resources that others are using.
    Contention,
    /// Combining, and the calls' own work.
    Compute,
}

impl Cause {
    /// All causes.
    pub const EVERY: [Self; 5] =
        [Self::OffChip, Self::OnChip, Self::Flags, Self::Contention, Self::Compute];

    /// Returns the name of the cause.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OffChip => "off-chip",
            Self::OnChip => "on-chip",
            Self::Flags => "flags",
            Self::Contention => "contention",
            Self::Compute => "compute",
        }
    }
}

/// The account of one PE so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    spent: [Cell<Time>; Cause::EVERY.len()],
    messages: Cell<u64>,
    bytes: Cell<u64>,
    transfers: Cell<u64>,
    occupied: Cell<Time>,
}

impl Account {
    /// Adds time that was spent.
    pub(crate) fn spend(&self, cause: Cause, time: Time) {
        let spent = &self.spent[cause as usize];
        spent.set(spent.get() + time);
    }

    /// Counts time for which messages occupy the processor, and not only the interface.
    pub(crate) fn occupy(&self, time: Time) {
        self.occupied.set(self.occupied.get() + time);
    }

    /// Returns the time for which messages have occupied the processor so far. It is counted on
    /// clusters.
    pub(crate) fn occupied(&self) -> Time {
        self.occupied.get()
    }

    /// Counts a message, a signal, or a put or get of this many bytes.
    pub(crate) fn message(&self, bytes: usize) {
        self.messages.set(self.messages.get() + 1);
        self.bytes.set(self.bytes.get() + bytes as u64);
    }

    /// Counts lines that were transferred to the PE's core, and stores to lines that another core
    /// had a copy of.
    pub(crate) fn transfers(&self, lines: usize) {
        self.transfers.set(self.transfers.get() + lines as u64);
    }

    /// Returns the totals so far.
    pub(crate) fn total(&self) -> Total {
        let spent_ns = Cause::EVERY.map(|cause| self.spent[cause as usize].get() as f64 / 1e3);
        Total {
            spent_ns,
            messages: self.messages.get(),
            bytes: self.bytes.get(),
            transfers: self.transfers.get(),
        }
    }
}

/// The totals of a PE.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    spent_ns: [f64; Cause::EVERY.len()],
    /// Messages, signals, puts and gets that it started.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Transfers of cache lines: loads of lines from another core or from memory, and stores to
    /// lines that others have copies of. They are counted on coherent machines.
    pub transfers: u64,
}

impl Total {
    /// Returns the time that was spent for a cause, in nanoseconds. The rest of a PE's time was
    /// spent waiting.
    #[must_use]
    pub const fn spent_ns(&self, cause: Cause) -> f64 {
        self.spent_ns[cause as usize]
    }

    /// Returns the sum of the totals of two PEs.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for (mine, theirs) in self.spent_ns.iter_mut().zip(other.spent_ns) {
            *mine += theirs;
        }
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.transfers += other.transfers;
        self
    }
}
