//! Numbers that a machine gives out once, and the words at which threads wait for each other by
//! such numbers: Dice and Kogan 2025 ("Hapax Locks").
//!
//! A thread takes numbers in blocks, so that it seldom needs the counter that all threads share. A
//! thread that ends wastes the rest of its block. There are 2^48 blocks: a million new threads per
//! second use them up in 8 years.
//!
//! The machine has an array of words, which all objects share. The block of a number and the object
//! determine the word. So a thread often uses the same word again, and different threads seldom
//! share one. If they do, it costs time only.

use std::cell::Cell;

/// The numbers of a block.
const BLOCK: u64 = 1 << 16;
/// The number of shared words, as in the paper.
const WORDS: usize = 1 << 12;

/// The unique numbers that a thread may still give out.
#[derive(Debug, Default)]
pub struct UniqueNumbers {
    /// The next number. A new block is needed if it is a multiple of [`BLOCK`].
    next: Cell<u64>,
}

impl UniqueNumbers {
    /// The number of words at which threads wait for each other by unique numbers.
    pub const WORDS: usize = WORDS;

    /// Returns the numbers of a thread that has none yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: Cell::new(0) }
    }

    /// Takes a number. `next_block` returns 1, 2 and so on, each value to one thread of a machine.
    #[inline(always)]
    pub fn take(&self, next_block: impl FnOnce() -> u64) -> u64 {
        let next = self.next.get();
        let number = if next.is_multiple_of(BLOCK) { next_block() * BLOCK } else { next };
        self.next.set(number + 1);
        number
    }

    /// Returns the block of a number.
    #[inline(always)]
    #[must_use]
    pub const fn block(number: u64) -> u64 {
        number / BLOCK
    }

    /// Returns the index of the word for an object and a number. `object` differs between objects,
    /// like an address.
    #[inline(always)]
    #[must_use]
    pub fn index(object: u64, number: u64) -> usize {
        // The upper bits of products are well mixed (Knuth 1973, section 6.4). Each factor is odd,
        // so that neighbouring objects and blocks have different words.
        let object = object.wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mixed = object.wrapping_add(Self::block(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        usize::try_from(mixed >> (u64::BITS - WORDS.ilog2())).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn two_threads_never_take_the_same_number() {
        let (threads, blocks) = ([UniqueNumbers::new(), UniqueNumbers::new()], Cell::new(0));
        let next_block = || {
            blocks.set(blocks.get() + 1);
            blocks.get()
        };
        let numbers = (0..3 * BLOCK).flat_map(|_| threads.each_ref().map(|it| it.take(next_block)));
        let numbers: BTreeSet<u64> = numbers.collect();
        assert_eq!((numbers.len() as u64, blocks.get()), (6 * BLOCK, 6));
        assert!(!numbers.contains(&0));
    }

    #[test]
    fn numbers_of_a_block_share_a_word_and_neighbouring_blocks_do_not() {
        for object in [0, 0x7fff_1234_5670, 0x7fff_1234_5680] {
            let index = |number| UniqueNumbers::index(object, number);
            assert_eq!(index(7 * BLOCK), index(8 * BLOCK - 1));
            let indexes: BTreeSet<usize> = (1..=64).map(|block| index(block * BLOCK)).collect();
            assert_eq!(indexes.len(), 64);
            assert!(indexes.iter().all(|&index| index < WORDS));
        }
    }
}
