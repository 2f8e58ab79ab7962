//! The layout of the blocks of a vector variant in a buffer: MPI's counts and displacements.

use std::{fmt, ops::Range, sync::Arc};

use consort_fabric::{Layout, Rank};

/// The positions of blocks in a buffer, in elements: one block for each PE of the team, by rank.
/// The same value serves any number of calls.
///
/// ```
/// # use consort::{Displacements, Rank};
/// let blocks = Displacements::new(&[2, 0, 3])?; // one after the other
/// assert_eq!(blocks.range(Rank(2)), 2..5);
/// assert_eq!(blocks.extent(), 5);
///
/// let apart = Displacements::at(&[2, 2], &[10, 0])?; // anywhere
/// assert_eq!(apart.range(Rank(0)), 10..12);
/// # Ok::<(), consort::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Displacements {
    ranges: Arc<[Range<usize>]>,
    /// Two blocks that overlap, if any do.
    overlap: Option<(Rank, Rank)>,
}

/// The error for displacements that no buffer can have, or that do not fit a given buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisplacementsError {
    /// The numbers of counts and displacements differ.
    Uneven {
        /// The number of counts given.
        counts: usize,
        /// The number of displacements given.
        displacements: usize,
    },
    /// A block ends beyond the largest index.
    Overflow {
        /// The PE of the block.
        rank: Rank,
        /// The number of its elements.
        count: usize,
        /// Its first element.
        displacement: usize,
    },
    /// The number of blocks differs from the number of PEs.
    Number {
        /// The number of displacements given.
        given: usize,
        /// The team's size.
        pes: usize,
    },
    /// A block extends beyond the buffer.
    Beyond {
        /// The PE of the block.
        rank: Rank,
        /// Its elements.
        range: Range<usize>,
        /// The buffer's length in elements.
        len: usize,
    },
    /// Two blocks of a target overlap, so that the result would be undefined.
    Overlap {
        /// The PE of one block.
        one: Rank,
        /// The PE of the block that overlaps it.
        other: Rank,
    },
    /// The block that a PE sends to itself has one length in its source and another in its target.
    Own {
        /// The PE.
        rank: Rank,
        /// The elements in the source.
        given: usize,
        /// The elements in the target.
        received: usize,
    },
}

impl fmt::Display for DisplacementsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uneven { counts, displacements } => write!(
                f,
                "{counts} counts and {displacements} displacements: give one of each \
                 for every PE"
            ),
            Self::Overflow { rank, count, displacement } => write!(
                f,
                "the block of PE {rank} has {count} elements from element \
                 {displacement} on: no buffer is that long"
            ),
            Self::Number { given, pes } => {
                write!(f, "{given} blocks in a team of {pes} PEs: give one for each PE")
            }
            Self::Beyond { rank, range, len } => write!(
                f,
                "the block of PE {rank} is elements {range:?} of a buffer of {len}: make the \
                 buffer longer, or the block shorter"
            ),
            Self::Overlap { one, other } => write!(
                f,
                "the blocks of PE {one} and PE {other} overlap in the target: give \
                 each its own place"
            ),
            Self::Own { rank, given, received } => write!(
                f,
                "the block of PE {rank} for itself has {given} elements in its source and \
                 {received} in its target: give it one length"
            ),
        }
    }
}

impl std::error::Error for DisplacementsError {}

impl Displacements {
    /// Creates blocks of these lengths, one after the other, from the buffer's first element on.
    ///
    /// # Errors
    /// [`DisplacementsError::Overflow`].
    pub fn new(counts: &[usize]) -> Result<Self, DisplacementsError> {
        let begin = |next: &mut usize, count: &usize| {
            let at = *next;
            *next = next.saturating_add(*count);
            Some(at)
        };
        let displacements: Vec<usize> = counts.iter().scan(0, begin).collect();
        Self::at(counts, &displacements)
    }

    /// Creates blocks of these lengths at these displacements. Blocks of a source may overlap.
    ///
    /// # Errors
    /// [`DisplacementsError::Uneven`], [`DisplacementsError::Overflow`].
    pub fn at(counts: &[usize], displacements: &[usize]) -> Result<Self, DisplacementsError> {
        if counts.len() != displacements.len() {
            let (counts, displacements) = (counts.len(), displacements.len());
            return Err(DisplacementsError::Uneven { counts, displacements });
        }
        let of = |((&count, &displacement), rank): ((&usize, &usize), Rank)| {
            let end = displacement.checked_add(count);
            let end = end.ok_or(DisplacementsError::Overflow { rank, count, displacement })?;
            // An empty block has no elements, whatever its displacement.
            Ok(if count == 0 { 0..0 } else { displacement..end })
        };
        let each = counts.iter().zip(displacements).zip((0..).map(Rank));
        let ranges: Arc<[Range<usize>]> = each.map(of).collect::<Result<_, _>>()?;
        Ok(Self { overlap: overlap(&ranges), ranges })
    }

    /// Returns the number of blocks: the size of the team that they are for.
    #[must_use]
    pub fn number(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the elements of a PE's block; `0..0` if it is empty.
    ///
    /// # Panics
    /// When the PE has no block.
    #[must_use]
    pub fn range(&self, rank: Rank) -> Range<usize> {
        self.ranges[rank.index()].clone()
    }

    /// Returns the length of the shortest buffer that contains all blocks, in elements.
    #[must_use]
    pub fn extent(&self) -> usize {
        self.ranges.iter().map(|range| range.end).max().unwrap_or(0)
    }

    /// Returns the number of elements of each block, by rank.
    #[must_use]
    pub fn counts(&self) -> Vec<usize> {
        self.ranges.iter().map(ExactSizeIterator::len).collect()
    }

    /// Checks that a PE of a team of `pes` can contribute these blocks from a buffer of `len`
    /// elements.
    pub(crate) fn check_source(&self, pes: u32, len: usize) -> Result<(), DisplacementsError> {
        let pes = pes as usize;
        if self.number() != pes {
            return Err(DisplacementsError::Number { given: self.number(), pes });
        }
        let beyond = |range: &Range<usize>| range.end > len;
        match self.ranges.iter().zip((0..).map(Rank)).find(|(range, _)| beyond(range)) {
            Some((range, rank)) => {
                Err(DisplacementsError::Beyond { rank, range: range.clone(), len })
            }
            None => Ok(()),
        }
    }

    /// Checks that a PE of a team of `pes` can receive these blocks in a buffer of `len` elements.
    pub(crate) fn check_target(&self, pes: u32, len: usize) -> Result<(), DisplacementsError> {
        self.check_source(pes, len)?;
        match self.overlap {
            Some((one, other)) => Err(DisplacementsError::Overlap { one, other }),
            None => Ok(()),
        }
    }

    /// Returns the layout of the blocks, for elements of `element_bytes` bytes.
    pub(crate) fn layout(&self, element_bytes: usize) -> Layout<'_> {
        Layout::Listed { blocks: &self.ranges, element_bytes }
    }
}

/// Returns two ranges that overlap, if any do.
fn overlap(ranges: &[Range<usize>]) -> Option<(Rank, Rank)> {
    let ranked = ranges.iter().zip((0..).map(Rank)).filter(|(range, _)| !range.is_empty());
    let mut ordered: Vec<_> = ranked.collect();
    ordered.sort_unstable_by_key(|(range, _)| range.start);
    let mut pairs = ordered.windows(2).map(|pair| [pair[0], pair[1]]);
    let [(_, one), (_, other)] = pairs.find(|[(one, _), (other, _)]| other.start < one.end)?;
    Some((one.min(other), one.max(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_consecutive_or_at_given_displacements() {
        let blocks = Displacements::new(&[2, 0, 3]).expect("short");
        assert_eq!([0, 1, 2].map(|rank| blocks.range(Rank(rank))), [0..2, 0..0, 2..5]);
        assert_eq!((blocks.number(), blocks.extent()), (3, 5));
        assert_eq!(blocks.check_target(3, 5), Ok(()));
        let apart = Displacements::at(&[1, 2, 0], &[4, 0, 99]).expect("short");
        assert_eq!((apart.range(Rank(1)), apart.extent()), (0..2, 5));
        assert_eq!(Displacements::default().extent(), 0);
    }

    #[test]
    fn invalid_blocks_are_refused() {
        let overflow =
            DisplacementsError::Overflow { rank: Rank(1), count: 2, displacement: usize::MAX };
        assert_eq!(Displacements::new(&[usize::MAX, 2]), Err(overflow.clone()));
        assert_eq!(Displacements::at(&[1, 2], &[0, usize::MAX]), Err(overflow));
        let uneven = DisplacementsError::Uneven { counts: 2, displacements: 1 };
        assert_eq!(Displacements::at(&[1, 2], &[0]), Err(uneven));
        let blocks = Displacements::new(&[2, 3]).expect("short");
        assert_eq!(blocks.check_source(3, 5), Err(DisplacementsError::Number { given: 2, pes: 3 }));
        let beyond = DisplacementsError::Beyond { rank: Rank(1), range: 2..5, len: 4 };
        assert_eq!(blocks.check_target(2, 4), Err(beyond));
    }

    #[test]
    fn only_targets_may_not_overlap() {
        let overlapping = Displacements::at(&[3, 1, 2, 0], &[4, 0, 5, 5]).expect("short");
        assert_eq!(overlapping.check_source(4, 7), Ok(()));
        let overlap = DisplacementsError::Overlap { one: Rank(0), other: Rank(2) };
        assert_eq!(overlapping.check_target(4, 7), Err(overlap));
    }
}
