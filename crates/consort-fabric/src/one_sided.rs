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
