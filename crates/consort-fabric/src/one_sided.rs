//! What one-sided operations do to words of the symmetric heap.

/// An atomic operation on a word of symmetric memory, of 32 or 64 bits. Operands are its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// Read it.
    Load,
    /// Write it; returns what was there.
    Swap(u64),
    /// Write `new` if it is `current`; returns what was there.
    CompareSwap {
        /// What the word must be.
        current: u64,
        /// What it becomes then.
        new: u64,
    },
    /// Add, wrapping around; returns what was there.
    FetchAdd(u64),
    /// Bitwise and; returns what was there.
    FetchAnd(u64),
    /// Bitwise or; returns what was there.
    FetchOr(u64),
    /// Bitwise exclusive or; returns what was there.
    FetchXor(u64),
}

/// How a signal changes a word of symmetric memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The word becomes this.
    Set(u64),
    /// This is added to it.
    Add(u64),
}

/// What a wait on a word of the caller's own symmetric memory waits for. Bits are compared as
/// unsigned integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Equal to this.
    Equals(u64),
    /// Anything but this.
    Differs(u64),
    /// This or more.
    AtLeast(u64),
    /// This or less.
    AtMost(u64),
}

impl Until {
    /// Whether `value` ends the wait.
    #[inline]
    #[must_use]
    pub const fn holds(self, value: u64) -> bool {
        match self {
            Self::Equals(wanted) => value == wanted,
            Self::Differs(unwanted) => value != unwanted,
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}
