//! A cache line that carries a message: seven words of data, then the sequence word.
//!
//! | word | content |
//! | --- | --- |
//! | 0..7 | payload, relaxed |
//! | 7 | `{hash of all calls so far : 24, sequence : 40}`, stored last with release |
//!
//! The receiver waits for the sequence word with acquire and then reads the payload, so the
//! transfer of one line carries both. This is the bundled communication of Dinan et al. 2014 on a
//! cache-coherent machine. The sender may overwrite the line only after the receiver has
//! acknowledged the message on another line.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_machine::sync::AtomicU64;

/// The number of payload words in a line.
pub const PAYLOAD_WORDS: usize = 7;

pub(crate) type LineWord = AtomicU64;

/// A cache line of eight words.
#[repr(align(64))]
#[derive(Debug)]
pub struct Line {
    words: [AtomicU64; 8],
}

impl Default for Line {
    fn default() -> Self {
        Self { words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl Line {
    /// Returns the line at these eight words.
    ///
    /// # Panics
    /// When there are not exactly eight, or they are not aligned to a line.
    #[inline(always)]
    #[expect(unsafe_code, reason = "a line is an array with an alignment")]
    pub(crate) fn of_words(words: &[AtomicU64]) -> &Self {
        const { assert!(size_of::<Self>() == 8 * size_of::<AtomicU64>()) };
        let at = words.as_ptr().cast::<Self>();
        assert!(words.len() == 8 && at.is_aligned(), "a line is eight words on a line");
        // SAFETY: a line is exactly eight words, without padding. These words are aligned like a
        // line and borrowed for the same lifetime.
        unsafe { &*at }
    }

    /// Writes a payload word. The receiver sees it after the next [`Line::publish`].
    #[inline(always)]
    pub fn write(&self, index: usize, value: u64) {
        self.words[index].store(value, Relaxed);
    }

    /// Reads a payload word, after [`Line::word`] returned the message's sequence word.
    #[inline(always)]
    #[must_use]
    pub fn read(&self, index: usize) -> u64 {
        self.words[index].load(Relaxed)
    }

    /// Completes the message. Release: pairs with the acquire of [`Line::word`].
    #[inline(always)]
    pub fn publish(&self, word: u64) {
        self.words[PAYLOAD_WORDS].store(word, Release);
    }

    /// Returns the sequence word. Acquire: pairs with the release of [`Line::publish`].
    #[inline(always)]
    #[must_use]
    pub fn word(&self) -> u64 {
        self.words[PAYLOAD_WORDS].load(Acquire)
    }

    /// Publishes a sequence word at `index`, in a line that carries several. Like
    /// [`Line::publish`].
    #[inline(always)]
    pub fn publish_at(&self, index: usize, word: u64) {
        self.words[index].store(word, Release);
    }

    /// Returns the sequence word at `index`, in a line that carries several. Like [`Line::word`].
    #[inline(always)]
    #[must_use]
    pub fn word_at(&self, index: usize) -> u64 {
        self.words[index].load(Acquire)
    }

    /// Returns a word of the line, for use as a counter.
    #[inline(always)]
    #[must_use]
    pub fn counter(&self, index: usize) -> &AtomicU64 {
        &self.words[index]
    }
}
