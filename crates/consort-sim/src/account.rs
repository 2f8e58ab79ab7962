//! Where the virtual time of a PE goes.

use std::cell::Cell;

use crate::engine::Time;

/// What a PE spends time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Reading and writing its own memory, off the chip.
    OffChip,
    /// Moving data between caches or message buffers, and across a network.
    OnChip,
    /// Setting and reading flags.
    Flags,
    /// Queueing for what others use.
    Contention,
    /// Combining, and the calls' own work.
    Compute,
}

impl Cause {
    /// Every cause.
    pub const EVERY: [Self; 5] =
        [Self::OffChip, Self::OnChip, Self::Flags, Self::Contention, Self::Compute];

    /// What it is called.
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

/// What one PE has done so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    spent: [Cell<Time>; Cause::EVERY.len()],
    messages: Cell<u64>,
    bytes: Cell<u64>,
    transfers: Cell<u64>,
}

impl Account {
    /// Notes time that was spent.
    pub(crate) fn spend(&self, cause: Cause, time: Time) {
        let spent = &self.spent[cause as usize];
        spent.set(spent.get() + time);
    }

    /// Notes a message, a signal, or a put or get of so many bytes.
    pub(crate) fn message(&self, bytes: usize) {
        self.messages.set(self.messages.get() + 1);
        self.bytes.set(self.bytes.get() + bytes as u64);
    }

    /// Notes lines that came to its core from elsewhere, or a copy of which was taken from another.
    pub(crate) fn transfers(&self, lines: usize) {
        self.transfers.set(self.transfers.get() + lines as u64);
    }

    /// What it comes to.
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

/// What a PE has done in all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    spent_ns: [f64; Cause::EVERY.len()],
    /// Messages, signals, puts and gets that it began.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Transfers of cache lines: to load one that another core, or memory, has, and to store to
    /// one that others have copies of. Counted on coherent machines.
    pub transfers: u64,
}

impl Total {
    /// Time that was spent on something, in nanoseconds. What is left was spent waiting.
    #[must_use]
    pub const fn spent_ns(&self, cause: Cause) -> f64 {
        self.spent_ns[cause as usize]
    }

    /// Of two PEs together.
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
