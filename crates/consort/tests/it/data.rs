//! Data that is known from a seed, operators that show the order they were applied in, and delays.

use std::{fmt::Debug, thread, time::Duration};

use consort::{Collective, Operator, Pod, Rank};
use consort_fabric::{Kernel, reference};

/// What a buffer holds before data comes and after it is used.
pub(crate) const BLANK: u8 = 0xA5;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("below a usize")
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub(crate) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// Is late now and then: mostly by a turn of the scheduler, at times by a sleep.
    pub(crate) fn dawdle(&mut self) {
        match self.below(60) {
            0 => thread::sleep(Duration::from_micros(300)),
            1..4 => thread::yield_now(),
            _ => {}
        }
    }
}

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
pub(crate) fn block<T: Element>(seed: u64, rank: Rank, index: u32, len: usize) -> Vec<T> {
    let mut random = Random(seed ^ u64::from(rank.0) << 48 ^ u64::from(index) << 32);
    (0..len).map(|_| T::of(random.next())).collect()
}

/// The elements that bytes are.
pub(crate) fn elements<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
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
        let block =
            |rank, index| bytemuck::cast_slice(&block::<T>(seed, rank, index, len)).to_vec();
        reference::result(collective, pes, rank, root, Some(&kernel), block)
            .map(|bytes| elements(&bytes))
    }
}

/// Nothing that was ever contributed.
pub(crate) fn blank<T: Element>(len: usize) -> Vec<T> {
    vec![T::of(u64::from_le_bytes([BLANK; 8])); len]
}

/// Every element differs from PE to PE, and the order of the operands shows: composition of maps
/// `x -> a x + b` modulo 2^32, with `a` in the upper half; `first`, then `second`.
pub(crate) fn affine(first: u64, second: u64) -> u64 {
    let half = |map: u64| (map >> 32, map & 0xffff_ffff);
    let ((a, b), (c, d)) = (half(first), half(second));
    let scale = a.wrapping_mul(c) & 0xffff_ffff;
    let shift = c.wrapping_mul(b).wrapping_add(d) & 0xffff_ffff;
    scale << 32 | shift
}

/// The same modulo 16, in a byte.
pub(crate) fn affine_in_a_byte(first: u8, second: u8) -> u8 {
    let (a, b, c, d) = (first >> 4, first & 15, second >> 4, second & 15);
    ((a * c) & 15) << 4 | ((c * b + d) & 15)
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

#[test]
fn operators_are_associative_and_not_commutative() {
    let mut random = Random(1);
    for _ in 0..1000 {
        let (a, b, c) = (random.next(), random.next(), random.next());
        assert_eq!(affine(affine(a, b), c), affine(a, affine(b, c)));
        assert_ne!(affine(a, b), affine(b, a));
        let (a, b, c) = (u8::of(a), u8::of(b), u8::of(c));
        assert_eq!(
            affine_in_a_byte(affine_in_a_byte(a, b), c),
            affine_in_a_byte(a, affine_in_a_byte(b, c))
        );
    }
    assert_ne!(affine_in_a_byte(0x23, 0x31), affine_in_a_byte(0x31, 0x23));
}
