//! One-sided operations on words of the symmetric heap.

/// An atomic operation on a word of symmetric memory, of 32 or 64 bits. Operands are bit patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// Read the word.
    Load,
    /// Write the word; returns the old value.
    Swap(u64),
    /// Write `new` if the word is `current`; returns the old value.
    CompareSwap {
        /// The value to compare with.
        current: u64,
        /// The value to write.
        new: u64,
    },
    /// Add, wrapping around; returns the old value.
    FetchAdd(u64),
    /// Bitwise and; returns the old value.
    FetchAnd(u64),
    /// Bitwise or; returns the old value.
    FetchOr(u64),
    /// Bitwise exclusive or; returns the old value.
    FetchXor(u64),
}

/// How a signal changes a word of symmetric memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Store this value.
    Set(u64),
    /// Add this value.
    Add(u64),
}

/// The condition of a wait on a word of the caller's own symmetric memory. Bits are compared as
/// unsigned integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Equal to this value.
    Equals(u64),
    /// Different from this value.
    Differs(u64),
    /// At least this value.
    AtLeast(u64),
    /// At most this value.
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
