//! The layout of blocks in a buffer, for vector variants.

use std::ops::Range;

use crate::{Collective, Place, Span};

/// The layout of a PE's blocks in one of its buffers: one block for each PE of the team, or one for
/// all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout<'l> {
    /// Blocks of equal length, at equal distances.
    Even {
        /// The distance between the beginnings of two blocks, in bytes; 0 if all PEs have the same
        /// block.
        apart: usize,
        /// The length of a block, in bytes.
        bytes: usize,
    },
    /// Blocks from a list.
    Listed {
        /// The blocks' ranges of elements, by rank.
        blocks: &'l [Range<usize>],
        /// Bytes of an element.
        element_bytes: usize,
    },
}

impl Layout<'_> {
    /// Returns the layout of a single block for all PEs.
    #[must_use]
    pub const fn whole(bytes: usize) -> Self {
        Self::Even { apart: 0, bytes }
    }

    /// Returns the layouts of source and target of a vector variant on blocks of `bytes`, for a PE
    /// of a team of `pes` that is the root if `is_root`; `None` for other collectives.
    #[inline]
    #[must_use]
    pub fn of_blocks(
        collective: Collective,
        pes: u32,
        is_root: bool,
        bytes: usize,
    ) -> Option<[Self; 2]> {
        let of = |blocks| Self::Even { apart: if blocks > 1 { bytes } else { 0 }, bytes };
        let blocks =
            [collective.source_blocks(pes, is_root), collective.target_blocks(pes, is_root)];
        collective.is_vector().then(|| blocks.map(of))
    }

    /// Returns the span of block `index` in the source or the target, by their layouts.
    ///
    /// # Panics
    /// When no such block is listed.
    #[must_use]
    pub fn span([source, target]: &[Self; 2], place: Place, index: u32) -> Span {
        let layout = if place == Place::Target { target } else { source };
        let (at, bytes) = layout.block(index);
        Span { place, at, bytes }
    }

    /// Returns the offset and length of block `index`, in bytes.
    ///
    /// # Panics
    /// When no such block is listed.
    #[inline]
    #[must_use]
    pub fn block(&self, index: u32) -> (usize, usize) {
        match *self {
            Self::Even { apart, bytes } => (index as usize * apart, bytes),
            Self::Listed { blocks, element_bytes } => {
                let Range { start, end } = blocks[index as usize];
                (start * element_bytes, (end - start) * element_bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_by_rank() {
        assert_eq!(Layout::whole(24).block(2), (0, 24));
        assert_eq!(Layout::Even { apart: 24, bytes: 24 }.block(2), (48, 24));
        let blocks = [3..3, 0..2, 5..9];
        let listed = Layout::Listed { blocks: &blocks, element_bytes: 8 };
        assert_eq!([0, 1, 2].map(|index| listed.block(index)), [(24, 0), (0, 16), (40, 32)]);
        let both = [Layout::whole(24), listed];
        assert_eq!(Layout::span(&both, Place::Source, 2), Span::source(0, 24));
        assert_eq!(Layout::span(&both, Place::Target, 2), Span::target(40, 32));
    }
}
