//! Unique numbers of the process, and the words at which threads wait for each other by them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{Line, UniqueNumbers, Word};

/// The words, each on its own line.
static WORDS: [Line; UniqueNumbers::WORDS] = [const { Line::new() }; UniqueNumbers::WORDS];

/// Returns the number of a block that no thread has used. Only the value matters, so the operation
/// is relaxed. After a fork, parent and child take the same numbers, which is harmless, because they
/// share no lock.
#[cold]
pub(super) fn next_block() -> u64 {
    static USED: AtomicU64 = AtomicU64::new(0);
    USED.fetch_add(1, Relaxed) + 1
}

/// Returns the word for an object and a number.
#[inline(always)]
pub(super) fn word(object: &Word, number: u64) -> &'static Word {
    let address = std::ptr::from_ref(object).addr() as u64;
    &WORDS[UniqueNumbers::index(address, number)][0]
}
