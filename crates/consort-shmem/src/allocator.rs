//! The allocator of a symmetric heap. Every PE has an allocator, and all make the same sequence of
//! changes, so they compute the same offsets.

use std::{collections::BTreeMap, ops::Range};

/// The smallest alignment of an allocation: a cache line.
const ALIGN: usize = 64;

/// The allocations in a heap, by offset: first fit.
#[derive(Debug)]
pub struct Allocator {
    begin: usize,
    end: usize,
    /// The size of each allocation, by its offset.
    taken: BTreeMap<usize, usize>,
}

impl Allocator {
    /// Creates the allocator of the heap from `begin` to `end`, which is all free.
    pub const fn new(begin: usize, end: usize) -> Self {
        Self { begin, end, taken: BTreeMap::new() }
    }

    /// Allocates the first `bytes` free bytes at an offset of this alignment, a power of two.
    /// `None` if there are none.
    pub fn take(&mut self, bytes: usize, align: usize) -> Option<usize> {
        let mut at = self.begin.checked_next_multiple_of(align.max(ALIGN))?;
        for (&offset, &size) in &self.taken {
            if at.checked_add(bytes)? <= offset {
                break;
            }
            at = at.max((offset + size).checked_next_multiple_of(align.max(ALIGN))?);
        }
        if at.checked_add(bytes)? > self.end {
            return None;
        }
        self.taken.insert(at, bytes);
        Some(at)
    }

    /// Returns the size of the allocation at this offset; `None` if there is none.
    pub fn size(&self, at: usize) -> Option<usize> {
        self.taken.get(&at).copied()
    }

    /// Returns the number of allocated bytes.
    pub fn taken(&self) -> usize {
        self.taken.values().sum()
    }

    /// Frees the allocation at this offset, and returns its size; `None` if there is none.
    pub fn give(&mut self, at: usize) -> Option<usize> {
        self.taken.remove(&at)
    }

    /// Frees everything.
    pub fn give_all(&mut self) {
        self.taken.clear();
    }

    /// Returns the free range around an offset that is not allocated.
    pub fn gap(&self, at: usize) -> Range<usize> {
        let before = self.taken.range(..at).next_back();
        let next = self.taken.range(at..).next();
        let start = before.map_or(self.begin, |(&offset, &size)| offset + size);
        start..next.map_or(self.end, |(&offset, _)| offset)
    }

    /// Resizes the allocation at `at` in place; returns whether there is room.
    pub fn resize(&mut self, at: usize, bytes: usize) -> bool {
        let next = self.taken.range(at + 1..).next().map_or(self.end, |(&offset, _)| offset);
        let fits = at.checked_add(bytes).is_some_and(|end| end <= next);
        if fits {
            self.taken.insert(at, bytes);
        }
        fits
    }

    /// Returns whether `bytes` bytes at `at` lie in one allocation.
    pub fn holds(&self, at: usize, bytes: usize) -> bool {
        let part = self.taken.range(..=at).next_back();
        part.is_some_and(|(&offset, &size)| bytes <= (offset + size).saturating_sub(at))
    }
}

#[cfg(test)]
mod tests {
    use super::Allocator;

    #[test]
    fn first_fit_is_taken() {
        let mut allocator = Allocator::new(100, 1024);
        assert_eq!(allocator.take(1, 1), Some(128));
        assert_eq!(allocator.take(65, 8), Some(192));
        assert_eq!(allocator.take(64, 512), Some(512));
        assert_eq!(allocator.take(128, 8), Some(320));
        assert_eq!(allocator.give(192), Some(65));
        assert_eq!(allocator.give(192), None);
        assert_eq!(allocator.take(129, 8), Some(576));
        assert_eq!(allocator.take(128, 8), Some(192));
        assert_eq!(allocator.take(1024, 8), None);
        assert_eq!((allocator.gap(150), allocator.gap(450)), (129..192, 448..512));
        let mut large = Allocator::new(0, 1 << 30);
        assert_eq!(large.take(8, 8), Some(0));
        assert_eq!(large.take(8, 4 << 20), Some(4 << 20));
        assert_eq!(large.take(8, 1 << 30), None);
        assert_eq!(allocator.take(usize::MAX, 8), None);
    }

    #[test]
    fn block_with_room_grows_in_place() {
        let mut allocator = Allocator::new(0, 1024);
        let (first, second) = (allocator.take(64, 8), allocator.take(64, 8));
        assert!(!allocator.resize(first.expect("room"), 65));
        assert!(allocator.resize(second.expect("room"), 960));
        assert!(!allocator.resize(64, 961));
        assert!(allocator.holds(64, 960) && !allocator.holds(64, 961) && !allocator.holds(1024, 1));
    }
}
