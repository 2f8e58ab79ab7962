//! Slices of a message, one per node, and the ring in which every node obtains all slices.
//!
//! Nodes are *relative* ranks, counted from the root. In round `r` node `i` sends slice `i + r` to
//! its left neighbour, node `i - 1`, and receives slice `i + 1 + r` from its right one. The root
//! has all slices, so it receives none (Petrović 2015, section 3.3.2).

use std::ops::Range;

use consort_fabric::Rank;

/// The slices of a message, as seen by one PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slices {
    bytes: usize,
    slice: usize,
    pes: u32,
    /// This PE's node.
    pub node: u32,
}

impl Slices {
    /// Creates the slices of a message of `bytes` bytes from the root, for `rank`.
    #[must_use]
    pub fn new(bytes: usize, rank: Rank, root: Rank, pes: u32) -> Self {
        // Whole words, so that lines hold whole words.
        let slice = bytes.div_ceil(pes as usize).next_multiple_of(8);
        Self { bytes, slice, pes, node: (rank.0 + pes - root.0) % pes }
    }

    /// Returns the length of the longest slice, in bytes.
    #[must_use]
    pub const fn longest(&self) -> usize {
        self.slice
    }

    /// Returns the offset and length of the slices of a range of nodes.
    #[must_use]
    pub fn of(&self, nodes: &Range<u32>) -> (usize, usize) {
        let start = |node: u32| self.bytes.min(node as usize * self.slice);
        (start(nodes.start), start(nodes.end) - start(nodes.start))
    }

    /// Returns the offset in the message and the length of the part `at..at + len` of the slice
    /// `after` nodes after this one.
    #[inline(always)]
    #[must_use]
    pub fn part(&self, after: u32, at: usize, len: usize) -> (usize, usize) {
        let start = ((self.node + after) % self.pes) as usize * self.slice + at;
        let (start, end) = (self.bytes.min(start), self.bytes.min(start + len));
        (start, end - start)
    }

    /// Returns the PE on the left, unless it has all slices.
    #[must_use]
    pub fn left(&self, rank: Rank) -> Option<Rank> {
        (self.node != 1 && self.pes > 1)
            .then(|| rank.plus(self.pes as usize - 1, self.pes as usize))
    }

    /// Returns the PE on the right, unless this PE has all slices.
    #[must_use]
    pub fn right(&self, rank: Rank) -> Option<Rank> {
        (self.node != 0).then(|| rank.plus(1, self.pes as usize))
    }

    /// Returns whether this PE sends before it receives. Every second PE does, so that half of the
    /// PEs send at a time if a send waits for its receiver.
    #[inline(always)]
    #[must_use]
    pub const fn sends_first(&self) -> bool {
        self.node.is_multiple_of(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_the_message_and_the_ring() {
        for pes in [1, 2, 3, 7, 48] {
            for bytes in [0, 1, 8, 100, 4096, 5000] {
                for root in [0, pes - 1].map(Rank) {
                    let all = (0..pes).map(|rank| Slices::new(bytes, Rank(rank), root, pes));
                    for (rank, slices) in (0..pes).map(Rank).zip(all) {
                        assert_eq!(slices.of(&(0..pes)), (0, bytes));
                        let own = slices.of(&(slices.node..slices.node + 1));
                        assert_eq!(slices.part(0, 0, slices.longest()), own);
                        assert_eq!(slices.right(rank).is_none(), rank == root);
                        assert_eq!(slices.left(rank).is_none(), slices.node == 1 || pes == 1);
                        // It receives in each round what its right neighbour sends.
                        if let Some(right) = slices.right(rank) {
                            let other = Slices::new(bytes, right, root, pes);
                            let whole = |of: &Slices, after| of.part(after, 0, of.longest());
                            for round in 0..pes - 1 {
                                assert_eq!(whole(&slices, round + 1), whole(&other, round));
                            }
                        }
                    }
                }
            }
        }
    }
}
