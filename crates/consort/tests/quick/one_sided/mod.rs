//! Symmetric memory: puts, gets, signals, atomics, waiting, allocation.

mod atomics;
mod memory;
mod moving;
mod ordering;
mod ranges;
mod waiting;

/// Words of a long message.
const WORDS: usize = 5000;
