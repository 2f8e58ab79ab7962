//! Symmetric memory: puts, gets, signals, atomics, waiting, allocation.

mod atomics;
mod memory;
mod moving;
mod ordering;
mod waiting;

const WORDS: usize = 5000;
