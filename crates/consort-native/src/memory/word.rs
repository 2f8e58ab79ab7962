//! A region of memory of 8 bytes.

#![expect(unsafe_code, reason = "reads and writes raw addresses")]

use super::{copy::copy_shared_line, region::Memory};

/// A region of memory of 8 bytes, with any alignment.
#[derive(Clone, Copy)]
pub(crate) struct Word(Memory);

impl Word {
    /// # Safety
    /// Each memory has 8 bytes.
    #[inline(always)]
    pub(crate) unsafe fn of_eight_bytes<const N: usize>(memories: [Memory; N]) -> [Self; N] {
        debug_assert!(memories.iter().all(|memory| memory.bytes == 8));
        memories.map(Self)
    }

    #[inline(always)]
    pub(crate) fn load(self) -> u64 {
        let Self(memory) = self;
        if !memory.is_shared() {
            // SAFETY: 8 bytes are readable, and nothing writes them during the read.
            return unsafe { memory.at.cast::<u64>().read_unaligned() };
        }
        let mut word = 0_u64;
        // SAFETY: 8 bytes are readable, and `word` has 8.
        unsafe { copy_shared_line(Memory::private((&raw mut word).cast(), 8), memory) };
        word
    }

    #[inline(always)]
    pub(crate) fn store(self, mut word: u64) {
        let Self(memory) = self;
        if memory.is_shared() {
            // SAFETY: 8 bytes are writable, and `word` has 8.
            unsafe { copy_shared_line(memory, Memory::private((&raw mut word).cast(), 8)) };
        } else {
            // SAFETY: 8 bytes are writable, and nothing else accesses them.
            unsafe { memory.at.cast::<u64>().write_unaligned(word) };
        }
    }
}

impl Memory {
    /// Returns this region as a word.
    ///
    /// # Panics
    /// When the region is not 8 bytes long.
    #[inline(always)]
    pub(crate) fn word(self) -> Word {
        assert!(self.bytes == 8, "a word is 8 bytes");
        Word(self)
    }

    /// Returns word `index` of this region.
    ///
    /// # Panics
    /// When the region ends before the end of the word.
    #[inline(always)]
    pub(crate) fn word_at(self, index: usize) -> Word {
        let at = 8 * index;
        assert!(at + 8 <= self.bytes, "a word lies in its memory");
        Word(Self { at: self.at.wrapping_add(at), bytes: 8, shared: self.shared })
    }
}
