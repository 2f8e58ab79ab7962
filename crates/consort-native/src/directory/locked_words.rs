//! Words of the directory, accessed only under its lock.

use std::sync::atomic::Ordering::Relaxed;

use crate::inbox::line::LineWord;

/// Consecutive words. The lock orders the accesses of all PEs.
#[derive(Clone, Copy)]
pub(super) struct LockedWords<'d>(pub(super) &'d [LineWord]);

impl LockedWords<'_> {
    pub(super) fn get(self, index: usize) -> u64 {
        self.0[index].load(Relaxed)
    }

    pub(super) fn set(self, index: usize, value: u64) {
        self.0[index].store(value, Relaxed);
    }

    /// Returns the value of a word that holds an index or a number of bytes.
    pub(super) fn size(self, index: usize) -> usize {
        size(self.get(index))
    }

    pub(super) fn set_size(self, index: usize, value: usize) {
        self.set(index, value as u64);
    }

    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    pub(super) fn array<const N: usize>(self, first: usize) -> [u64; N] {
        std::array::from_fn(|index| self.get(first + index))
    }

    pub(super) fn set_array(self, first: usize, values: &[u64]) {
        for (index, &value) in values.iter().enumerate() {
            self.set(first + index, value);
        }
    }
}

/// Converts a word that was written from a `usize`.
pub(crate) fn size(word: u64) -> usize {
    usize::try_from(word).unwrap_or(usize::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn zeros(count: usize) -> Vec<LineWord> {
        (0..count).map(|_| LineWord::new(0)).collect()
    }
}
