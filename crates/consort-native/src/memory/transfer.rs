//! Copies between two regions of memory, and between a region and the cache lines of a message.

#![expect(unsafe_code, reason = "copies between raw addresses")]

use std::sync::atomic::Ordering::Relaxed;

use consort_fabric::LINE_PAYLOAD_BYTES;

use super::{
    copy::{copy_past_caches, copy_shared, copy_shared_line},
    region::Memory,
};
use crate::inbox::line::{LineWord, PAYLOAD_WORDS};
use consort_machine::system::clock;

/// The size in bytes of the first part of a copy for other cores. Its duration decides how to copy
/// the rest.
const BEGINNING: usize = 8 << 10;

/// The longest time that the first part takes if the cores share a cache: about 300 ns if they do,
/// 1.4 us or more if they do not. If they do not, copying the rest past the caches is several times
/// as fast. If they do, it would take up to three times as long.
const NEAR_NS: u64 = 1000;

impl Memory {
    /// Returns the payload of one line of a message: the bytes of this region, padded with zeros.
    ///
    /// # Panics
    /// When this region has more than 56 bytes.
    #[inline(always)]
    pub(crate) fn pack(self) -> [u64; PAYLOAD_WORDS] {
        assert!(self.bytes <= LINE_PAYLOAD_BYTES, "a line carries at most 56 bytes");
        let mut words = [0_u64; PAYLOAD_WORDS];
        let to = words.as_mut_ptr().cast::<u8>();
        if self.is_shared() {
            // SAFETY: at most 56 bytes are readable, and `words` has 56.
            unsafe { copy_shared_line(Self::private(to, self.bytes), self) };
        } else {
            // SAFETY: as above, and nothing writes them during the copy.
            unsafe { std::ptr::copy_nonoverlapping(self.at, to, self.bytes) };
        }
        words
    }

    /// Copies the payload words of a one-line message into this region. Missing words are zero.
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

    /// Copies `source` to this region. Either may be shared.
    ///
    /// # Panics
    /// When the lengths differ, or when the regions overlap and one is shared.
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

    /// Like [`Self::copy_from`], to memory that other cores have read and will read again. Most of
    /// the data goes past the caches if fetching the target's lines is slow.
    ///
    /// # Panics
    /// Same as [`Self::copy_from`], and when this region does not begin at a cache line.
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
