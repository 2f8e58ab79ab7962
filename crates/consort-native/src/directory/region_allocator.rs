//! An allocator of regions of memory: first fit, in flat memory.
//!
//! The allocated regions form a ring in the order of their offsets. The gaps between them are free.
//! Allocating walks the ring up to the first gap that is large enough. Freeing unlinks the region.
//! Cost: one step for each region before the gap.

use std::cell::Cell;

use super::locked_words::LockedWords;

/// The number of words in a region: offset, length, the previous region and the next region.
const REGION_WORDS: usize = 4;
const AT: usize = 0;
const BYTES: usize = 1;
const BEFORE: usize = 2;
const AFTER: usize = 3;

/// The number of words before the regions: the first spare region, how many regions have ever been
/// used, and the first byte that was never allocated.
const HEAD: usize = 4;
const SPARE: usize = 0;
const MADE: usize = 1;
const FRESH: usize = 2;

/// The ring's sentinel region, before the first region and after the last. It is empty, at offset
/// 0.
const RING: usize = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    /// The region's number, which identifies it when it is freed.
    pub(super) number: usize,
    pub(super) at: usize,
    /// The offset of the part that was never allocated before.
    pub(super) fresh: usize,
}

/// The reason why an allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegionError {
    /// No gap is large enough.
    Exhausted {
        /// The total number of free bytes.
        free: usize,
        /// The size of the largest gap in bytes.
        largest: usize,
    },
    /// The maximum number of regions is in use.
    TooMany {
        /// The maximum.
        most: usize,
    },
}

pub(super) struct RegionAllocator<'d> {
    words: LockedWords<'d>,
    bytes: Cell<usize>,
}

impl<'d> RegionAllocator<'d> {
    /// Returns the number of words for `regions` regions at a time.
    pub(super) const fn words(regions: usize) -> usize {
        HEAD + (regions + 1) * REGION_WORDS
    }

    /// Returns the allocator of `bytes` of memory whose state is in these words.
    pub(super) fn new(words: LockedWords<'d>, bytes: usize) -> Self {
        Self { words, bytes: Cell::new(bytes) }
    }

    fn get(&self, region: usize, word: usize) -> usize {
        self.words.size(HEAD + region * REGION_WORDS + word)
    }

    fn set(&self, region: usize, word: usize, value: usize) {
        self.words.set_size(HEAD + region * REGION_WORDS + word, value);
    }

    fn end(&self, region: usize) -> usize {
        self.get(region, AT) + self.get(region, BYTES)
    }

    /// Returns the offset and length of an allocated region.
    pub(super) fn region(&self, number: usize) -> (usize, usize) {
        (self.get(number, AT), self.get(number, BYTES))
    }

    /// Returns the gaps: for each, the region before it and its length.
    fn gaps(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut before = Some(RING);
        std::iter::from_fn(move || {
            let region = before?;
            let after = self.get(region, AFTER);
            before = (after != RING).then_some(after);
            let end = if after == RING { self.bytes.get() } else { self.get(after, AT) };
            Some((region, end - self.end(region)))
        })
    }

    /// Allocates `bytes` in the first gap that is large enough. `bytes` must not be 0.
    pub(super) fn take(&self, bytes: usize) -> Result<Region, RegionError> {
        assert!(bytes > 0, "an empty region has no offset");
        let Some((before, _)) = self.gaps().find(|&(_, gap)| gap >= bytes) else {
            let (free, largest) =
                self.gaps().fold((0, 0), |(free, most), (_, gap)| (free + gap, most.max(gap)));
            return Err(RegionError::Exhausted { free, largest });
        };
        self.take_after(before, bytes)
    }

    /// Extends the memory. First takes `fence` bytes at the old end, so that no region crosses it.
    /// Then calls `extend`, which adds memory behind them and returns the new end.
    pub(super) fn grow<E: From<RegionError>>(
        &self,
        fence: usize,
        extend: impl FnOnce() -> Result<usize, E>,
    ) -> Result<(), E> {
        let (old, last) = (self.bytes.get(), self.get(RING, BEFORE));
        let number = self.take_after(last, fence)?.number;
        self.set(number, AT, old);
        let end = extend().inspect_err(|_| self.free(number))?;
        self.bytes.set(end);
        Ok(())
    }

    /// Allocates `bytes` directly after a region.
    fn take_after(&self, before: usize, bytes: usize) -> Result<Region, RegionError> {
        let number = self.number()?;
        let (at, after) = (self.end(before), self.get(before, AFTER));
        for (word, value) in [(AT, at), (BYTES, bytes), (BEFORE, before), (AFTER, after)] {
            self.set(number, word, value);
        }
        self.set(before, AFTER, number);
        self.set(after, BEFORE, number);
        let fresh = self.words.size(FRESH);
        self.words.set_size(FRESH, fresh.max(at + bytes));
        Ok(Region { number, at, fresh: fresh.clamp(at, at + bytes) })
    }

    /// Returns an unused region number.
    fn number(&self) -> Result<usize, RegionError> {
        let spare = self.words.size(SPARE);
        if spare != RING {
            self.words.set_size(SPARE, self.get(spare, AFTER));
            return Ok(spare);
        }
        let (made, most) = (self.words.size(MADE), (self.words.len() - HEAD) / REGION_WORDS - 1);
        if made == most {
            return Err(RegionError::TooMany { most });
        }
        self.words.set_size(MADE, made + 1);
        Ok(made + 1)
    }

    pub(super) fn free(&self, number: usize) {
        let (before, after) = (self.get(number, BEFORE), self.get(number, AFTER));
        self.set(before, AFTER, after);
        self.set(after, BEFORE, before);
        self.set(number, AFTER, self.words.size(SPARE));
        self.words.set_size(SPARE, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::locked_words::tests::zeros;
    use proptest::{collection::vec, prelude::*};

    #[test]
    fn returned_regions_are_merged() {
        let words = zeros(RegionAllocator::words(8));
        let allocator = RegionAllocator::new(LockedWords(&words), 1024);
        let regions: Vec<Region> = (0..4).map(|_| allocator.take(256).expect("room")).collect();
        assert_eq!(allocator.take(1), Err(RegionError::Exhausted { free: 0, largest: 0 }));
        allocator.free(regions[1].number);
        allocator.free(regions[3].number);
        assert_eq!(allocator.take(300), Err(RegionError::Exhausted { free: 512, largest: 256 }));
        allocator.free(regions[2].number);
        assert_eq!(allocator.take(768).map(|region| (region.at, region.fresh)), Ok((256, 1024)));
    }

    #[test]
    fn pieces_run_out_and_returned_ones_are_reusable() {
        let words = zeros(RegionAllocator::words(2));
        let allocator = RegionAllocator::new(LockedWords(&words), 1024);
        let first = allocator.take(1).expect("room");
        allocator.take(1).expect("room");
        assert_eq!(allocator.take(1), Err(RegionError::TooMany { most: 2 }));
        allocator.free(first.number);
        assert_eq!(allocator.take(1).map(|region| region.at), Ok(0));
    }

    #[test]
    fn region_never_spans_an_old_end() {
        let words = zeros(RegionAllocator::words(8));
        let allocator = RegionAllocator::new(LockedWords(&words), 100);
        assert_eq!(allocator.take(60).map(|region| region.at), Ok(0));
        assert_eq!(
            allocator.grow(10, || Err(RegionError::TooMany { most: 0 })),
            Err(RegionError::TooMany { most: 0 })
        );
        assert_eq!(allocator.take(60), Err(RegionError::Exhausted { free: 40, largest: 40 }));
        assert_eq!(allocator.grow(10, || Ok::<_, RegionError>(200)), Ok(()));
        assert_eq!(allocator.take(60).map(|region| region.at), Ok(110));
        assert_eq!(allocator.take(40).map(|region| region.at), Ok(60));
    }

    proptest! {
        #[test]
        fn regions_are_disjoint_and_fill_the_first_gap(
            steps in vec((1_usize..40, any::<u8>()), 0..100)
        ) {
            let words = zeros(RegionAllocator::words(12));
            let allocator = RegionAllocator::new(LockedWords(&words), 200);
            let (mut taken, mut highest): (Vec<(Region, usize)>, usize) = (Vec::new(), 0);
            for (bytes, which) in steps {
                if which < 100 && !taken.is_empty() {
                    let (region, _) = taken.swap_remove(usize::from(which) % taken.len());
                    allocator.free(region.number);
                    continue;
                }
                let is_free = |at: usize| {
                    at + bytes <= 200
                        && taken.iter().all(|(it, its)| at + bytes <= it.at || it.at + its <= at)
                };
                let first = (0..200).find(|&at| is_free(at));
                match allocator.take(bytes) {
                    Ok(region) => {
                        prop_assert_eq!(Some(region.at), first);
                        prop_assert_eq!(region.fresh, highest.clamp(region.at, region.at + bytes));
                        highest = highest.max(region.at + bytes);
                        taken.push((region, bytes));
                    }
                    Err(RegionError::Exhausted { free, largest }) => {
                        prop_assert_eq!(first, None);
                        let used: usize = taken.iter().map(|(_, its)| its).sum();
                        prop_assert_eq!(free, 200 - used);
                        prop_assert!(largest < bytes);
                    }
                    Err(RegionError::TooMany { .. }) => prop_assert_eq!(taken.len(), 12),
                }
            }
        }
    }
}
