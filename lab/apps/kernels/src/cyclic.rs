//! One dimension of a block-cyclic distribution: block `b` belongs to part `b` modulo the number of
//! parts.
//!
//! Source: Dongarra, van de Geijn and Walker (1994), "Scalability issues affecting the design of a
//! dense linear algebra library", section 3. A part stores its elements contiguously, in order.

use std::ops::Range;

use consort::Rank;

/// The distribution of `len` elements over `parts` parts in blocks of `block`, seen from one part.
#[derive(Clone, Copy, Debug)]
pub struct Cyclic {
    /// The number of elements.
    pub len: usize,
    /// The number of elements in a block. The last block may have fewer.
    pub block: usize,
    /// The number of parts.
    pub parts: usize,
    /// The part from which this is seen.
    pub own: Rank,
}

impl Cyclic {
    /// Returns the number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.len.div_ceil(self.block)
    }

    /// Returns the number of elements in a block.
    #[must_use]
    pub fn width(&self, block: usize) -> usize {
        self.block.min(self.len - block * self.block)
    }

    /// Returns the part that owns a block.
    #[must_use]
    pub fn owner(&self, block: usize) -> Rank {
        Rank::new(block % self.parts)
    }

    /// Returns whether this part owns a block.
    #[must_use]
    pub fn owns(&self, block: usize) -> bool {
        self.owner(block) == self.own
    }

    /// Returns the number of elements of this part in blocks before `block`. For the owner of the
    /// block, the block begins there.
    #[must_use]
    pub fn before(&self, block: usize) -> usize {
        let parts = self.parts;
        let own_before = (block + parts - 1 - self.own.index()) / parts;
        let last = self.blocks().saturating_sub(1);
        let missing = if own_before > 0 && block > last && self.owns(last) {
            self.block - self.width(last)
        } else {
            0
        };
        own_before * self.block - missing
    }

    /// Returns the number of elements of this part.
    #[must_use]
    pub fn own_len(&self) -> usize {
        self.before(self.blocks())
    }

    /// Returns the range of a block's elements in the part that owns it.
    #[must_use]
    pub fn range(&self, block: usize) -> Range<usize> {
        let start = self.before(block);
        start..start + self.width(block)
    }

    /// Returns the blocks of this part, starting with `first`.
    pub fn own_blocks(&self, first: usize) -> impl Iterator<Item = usize> + use<> {
        let this = *self;
        (first..self.blocks()).filter(move |&block| this.owns(block))
    }

    /// Returns the global index of an element of this part.
    #[must_use]
    pub fn place(&self, own: usize) -> usize {
        let (block, offset) = (own / self.block, own % self.block);
        (block * self.parts + self.own.index()) * self.block + offset
    }
}

#[cfg(test)]
mod tests {
    use super::{Cyclic, Rank};

    #[test]
    fn each_element_has_one_place() {
        for (len, block, parts) in [(0, 4, 2), (1, 4, 3), (17, 5, 2), (24, 3, 4), (64, 64, 2)] {
            let mut seen = vec![0; len];
            for own in (0..parts).map(Rank::new) {
                let part = Cyclic { len, block, parts, own };
                (0..part.own_len()).for_each(|element| seen[part.place(element)] += 1);
                for block in part.own_blocks(0) {
                    let places: Vec<_> = part.range(block).map(|own| part.place(own)).collect();
                    let first = block * part.block;
                    assert!(places.into_iter().eq(first..first + part.width(block)));
                }
                let by_blocks: usize = part.own_blocks(0).map(|block| part.width(block)).sum();
                assert_eq!(part.own_len(), by_blocks);
            }
            assert!(seen.into_iter().all(|times| times == 1), "{len} {block} {parts}");
        }
    }

    #[test]
    fn blocks_before_a_block_are_counted() {
        let part = Cyclic { len: 17, block: 5, parts: 2, own: Rank(1) };
        assert_eq!((0..=4).map(|block| part.before(block)).collect::<Vec<_>>(), [0, 0, 5, 5, 7]);
    }
}
