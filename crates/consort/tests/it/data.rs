//! The contributions of PEs to a call, and the results that they must receive.

use std::fmt::Debug;

use consort::{Pod, Rank, ops::Operator, tune::Collective};
use consort_conformance::data::{self, BLANK, elements};
use consort_fabric::{Kernel, reference};

/// An element of test data.
pub(crate) trait Element: Pod + PartialEq + Debug {
    fn of(word: u64) -> Self;
}

impl Element for u8 {
    fn of(word: u64) -> Self {
        word.to_le_bytes()[7]
    }
}

impl Element for u64 {
    fn of(word: u64) -> Self {
        word
    }
}

/// Returns the PE with this number, modulo the number of PEs.
pub(crate) fn nth(pes: usize, number: usize) -> Rank {
    Rank::new(number % pes)
}

/// Returns a number of PEs as the engine counts them.
pub(crate) fn count(pes: usize) -> u32 {
    u32::try_from(pes).expect("few PEs")
}

/// Returns the number of blocks that a PE contributes to a call.
pub(crate) fn source_blocks(collective: Collective, pes: usize, is_root: bool) -> usize {
    collective.source_blocks(count(pes), is_root) as usize
}

/// Returns the number of blocks that a PE receives from a call.
pub(crate) fn target_blocks(collective: Collective, pes: usize, is_root: bool) -> usize {
    collective.target_blocks(count(pes), is_root) as usize
}

/// Returns PE `rank`'s contribution to the call with this seed, if that is one block.
pub(crate) fn contribution<T: Element>(seed: u64, rank: Rank, len: usize) -> Vec<T> {
    block(seed, rank, 0, len)
}

/// Returns block `index` of PE `rank`'s contribution to the call with this seed.
fn block<T: Element>(seed: u64, rank: Rank, index: u32, len: usize) -> Vec<T> {
    elements(&data::block(seed, rank, index, len * size_of::<T>()))
}

/// A PE's contribution to a call, and the result that it must receive, if any.
pub(crate) struct Call {
    pub(crate) collective: Collective,
    pub(crate) pes: usize,
    pub(crate) root: Rank,
    /// The number of elements of a block.
    pub(crate) len: usize,
    pub(crate) seed: u64,
}

impl Call {
    /// Returns PE `rank`'s contribution.
    pub(crate) fn source<T: Element>(&self, rank: Rank) -> Vec<T> {
        let blocks = self.collective.source_blocks(count(self.pes), rank == self.root);
        (0..blocks).flat_map(|index| block(self.seed, rank, index, self.len)).collect()
    }

    /// Returns the number of elements that PE `rank` receives.
    pub(crate) fn target_len(&self, rank: Rank) -> usize {
        target_blocks(self.collective, self.pes, rank == self.root) * self.len
    }

    /// Returns the result that PE `rank` must receive.
    pub(crate) fn result<T: Element, O: Operator<T>>(
        &self,
        rank: Rank,
        operator: &O,
    ) -> Option<Vec<T>> {
        let Self { collective, pes, root, len, seed } = *self;
        let kernel = Kernel::new::<T, O>(operator);
        let block = |rank, index| data::block(seed, rank, index, len * size_of::<T>());
        reference::result(collective, count(pes), rank, root, Some(&kernel), block)
            .map(|bytes| elements(&bytes))
    }
}

/// Returns elements that are never contributed.
pub(crate) fn blank<T: Element>(len: usize) -> Vec<T> {
    vec![T::of(u64::from_le_bytes([BLANK; 8])); len]
}

/// Combines all contributions in the order of the ranks.
pub(crate) fn combined<T: Element, O: Operator<T>>(
    pes: usize,
    len: usize,
    operator: &O,
    contribution: impl Fn(Rank) -> Vec<T>,
) -> Vec<T> {
    let mut sum = contribution(Rank(0));
    for rank in (1..pes).map(Rank::new) {
        let one = contribution(rank);
        assert_eq!(one.len(), len);
        for (sum, one) in sum.iter_mut().zip(one) {
            *sum = operator.apply(*sum, one);
        }
    }
    sum
}
