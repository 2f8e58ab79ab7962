//! Copies between two regions of memory, and between one and the cache lines of a message.

#![expect(unsafe_code, reason = "copies between raw addresses")]

use std::sync::atomic::Ordering::Relaxed;

use consort_fabric::LINE_PAYLOAD_BYTES;

use super::{
    copy::{copy_past_caches, copy_shared, copy_shared_line},
    region::Memory,
};
use crate::inbox::line::{LineWord, PAYLOAD_WORDS};
use consort_machine::system::clock;

/// The beginning of a copy for other cores, by which the way of the rest is chosen.
const BEGINNING: usize = 8 << 10;

/// How long the beginning takes at most if the cores share a cache: some 300 ns where they do, and
/// 1.4 us or more where they do not. Then the rest is several times as fast past the caches. Where
/// they share one it would take up to three times as long.
const NEAR_NS: u64 = 1000;

impl Memory {
    /// The payload of one line of a message: these bytes, padded with zeros.
    ///
    /// # Panics
    /// When they are more than 56.
    #[inline(always)]
    pub(crate) fn pack(self) -> [u64; PAYLOAD_WORDS] {
        assert!(self.bytes <= LINE_PAYLOAD_BYTES, "a line carries at most 56 bytes");
        let mut words = [0_u64; PAYLOAD_WORDS];
        let to = words.as_mut_ptr().cast::<u8>();
        if self.is_shared() {
            // SAFETY: at most 56 bytes are readable, and `words` has 56.
            unsafe { copy_shared_line(Self::private(to, self.bytes), self) };
        } else {
            // SAFETY: as above, and nothing writes them meanwhile.
            unsafe { std::ptr::copy_nonoverlapping(self.at, to, self.bytes) };
        }
        words
    }

    /// Copies the payload words of a message in one line into this region. What is beyond them is
    /// zero.
    ///
    /// # Panics
    /// When this region has more than 56 bytes.
    #[inline(always)]
    pub(crate) fn unpack(self, line: &[LineWord]) {
        assert!(self.bytes <= LINE_PAYLOAD_BYTES, "a line carries at most 56 bytes");
        if self.bytes == 8 {
            return self.word().store(line[0].load(Relaxed));
        }
        let words: [u64; PAYLOAD_WORDS] =
            std::array::from_fn(|index| line.get(index).map_or(0, |word| word.load(Relaxed)));
        let from = words.as_ptr().cast::<u8>();
        if self.is_shared() {
            // SAFETY: at most 56 bytes are writable, and `words` has 56.
            unsafe { copy_shared_line(self, Self::private(from.cast_mut(), self.bytes)) };
        } else {
            // SAFETY: as above, and nothing else accesses them.
            unsafe { std::ptr::copy_nonoverlapping(from, self.at, self.bytes) };
        }
    }

    /// Copies `source` to this region; either may be shared.
    ///
    /// # Panics
    /// When they differ in length, or when they overlap and one is shared.
    #[inline(always)]
    pub(crate) fn copy_from(self, source: Self) {
        assert!(self.bytes == source.bytes, "a copy is as long as what is copied");
        if self.bytes == 8 {
            self.word().store(source.word().load());
        } else if !(self.is_shared() || source.is_shared()) {
            // SAFETY: both are resolved, of equal length, and nothing else accesses either.
            unsafe { std::ptr::copy(source.at, self.at, self.bytes) };
        } else {
            self.must_be_apart_from(source);
            // SAFETY: both are resolved, of equal length, and do not overlap.
            unsafe { copy_shared(self, source) };
        }
    }

    /// As [`Self::copy_from`], to memory from which other cores have read, and will. Most goes past
    /// the caches if fetching its lines is slow.
    ///
    /// # Panics
    /// As [`Self::copy_from`], and when this region does not begin with a cache line.
    pub(crate) fn stage_from(self, source: Self) {
        if self.bytes < 2 * BEGINNING {
            return self.copy_from(source);
        }
        assert!(self.bytes == source.bytes, "a copy is as long as what is copied");
        self.must_be_apart_from(source);
        let begin_ns = clock::now_ns();
        let beginning = |memory: Self| Self { bytes: BEGINNING, ..memory };
        beginning(self).copy_from(beginning(source));
        let (target, source) = (self.after(BEGINNING), source.after(BEGINNING));
        if clock::now_ns() - begin_ns <= NEAR_NS {
            return target.copy_from(source);
        }
        // SAFETY: both are resolved, of equal length, and do not overlap.
        unsafe { copy_past_caches(target, source) };
    }

    #[inline(always)]
    fn must_be_apart_from(self, source: Self) {
        let apart = self.at.addr().abs_diff(source.at.addr());
        assert!(apart >= self.bytes, "what others reach is not copied over itself");
    }
}
