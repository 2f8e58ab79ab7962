//! What PEs contribute to a call, and what they must receive.

use std::fmt::Debug;

use consort::{Collective, Operator, Pod, Rank};
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

/// One PE after the other.
pub(crate) fn nth(pes: u32, number: usize) -> Rank {
    Rank(u32::try_from(number % pes as usize).expect("less than the number of PEs"))
}

/// What PE `rank` contributes to the call with this seed, where that is one block.
pub(crate) fn contribution<T: Element>(seed: u64, rank: Rank, len: usize) -> Vec<T> {
    block(seed, rank, 0, len)
}

/// Block `index` of what PE `rank` contributes to the call with this seed.
fn block<T: Element>(seed: u64, rank: Rank, index: u32, len: usize) -> Vec<T> {
    elements(&data::block(seed, rank, index, len * size_of::<T>()))
}

/// What a PE contributes to a call and what it must receive, if anything.
pub(crate) struct Call {
    pub(crate) collective: Collective,
    pub(crate) pes: u32,
    pub(crate) root: Rank,
    /// Elements of a block.
    pub(crate) len: usize,
    pub(crate) seed: u64,
}

impl Call {
    /// What PE `rank` contributes.
    pub(crate) fn source<T: Element>(&self, rank: Rank) -> Vec<T> {
        let blocks = self.collective.source_blocks(self.pes, rank == self.root);
        (0..blocks).flat_map(|index| block(self.seed, rank, index, self.len)).collect()
    }

    /// Elements that PE `rank` receives.
    pub(crate) fn target_len(&self, rank: Rank) -> usize {
        self.collective.target_blocks(self.pes, rank == self.root) as usize * self.len
    }

    /// What PE `rank` must receive.
    pub(crate) fn result<T: Element, O: Operator<T>>(
        &self,
        rank: Rank,
        operator: &O,
    ) -> Option<Vec<T>> {
        let Self { collective, pes, root, len, seed } = *self;
        let kernel = Kernel::new::<T, O>(operator);
        let block = |rank, index| data::block(seed, rank, index, len * size_of::<T>());
        reference::result(collective, pes, rank, root, Some(&kernel), block)
            .map(|bytes| elements(&bytes))
    }
}

/// Nothing that was ever contributed.
pub(crate) fn blank<T: Element>(len: usize) -> Vec<T> {
    vec![T::of(u64::from_le_bytes([BLANK; 8])); len]
}

/// All contributions combined in the order of the ranks.
pub(crate) fn combined<T: Element, O: Operator<T>>(
    pes: u32,
    len: usize,
    operator: &O,
    contribution: impl Fn(Rank) -> Vec<T>,
) -> Vec<T> {
    let mut sum = contribution(Rank(0));
    for rank in (1..pes).map(Rank) {
        let one = contribution(rank);
        assert_eq!(one.len(), len);
        for (sum, one) in sum.iter_mut().zip(one) {
            *sum = operator.apply(*sum, one);
        }
    }
    sum
}
