//! Data derived from a seed, operators that show the order of their application, and delays.

use std::{thread, time::Duration};

use bytemuck::Pod;
use consort_fabric::{Kernel, OperatorClass, Rank, Sum, splitmix64};

/// The content of a buffer before data arrives, and after its owner has it back.
pub const BLANK: u8 = 0xA5;
/// The value that the owner of a buffer writes over data that it has read.
pub const SPENT: u8 = 0x5A;

/// Random numbers from a seed.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next 64 bits.
    pub fn next_word(&mut self) -> u64 {
        splitmix64(&mut self.0)
    }

    /// Returns a number below `end`.
    ///
    /// # Panics
    /// When `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next_word() % end as u64).expect("below a usize")
    }

    /// Returns one of several items.
    ///
    /// # Panics
    /// When there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Returns true once in `one_in` times.
    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// Delays now and then: mostly by a turn of the scheduler, sometimes by a sleep.
    pub fn dawdle(&mut self) {
        match self.below(60) {
            0 => thread::sleep(Duration::from_micros(300)),
            1..4 => thread::yield_now(),
            _ => {}
        }
    }
}

/// Returns block `index` of PE `rank`'s contribution to the call with this seed.
#[must_use]
pub fn block(seed: u64, rank: Rank, index: u32, bytes: usize) -> Vec<u8> {
    let of_block = u64::from(rank.0) << 48 | u64::from(index) << 32;
    let mut random = Random(seed.wrapping_mul(0x0001_0001) ^ of_block);
    let words = (0..bytes.div_ceil(8)).flat_map(|_| random.next_word().to_ne_bytes());
    words.take(bytes).collect()
}

/// Converts bytes to elements.
#[must_use]
pub fn elements<T: Pod>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// Composes maps `x -> a x + b` modulo 2^32, with `a` in the upper half; `first`, then `second`.
/// Every element differs from PE to PE, and the order of the operands changes the result.
#[must_use]
pub fn affine(first: u64, second: u64) -> u64 {
    let half = |map: u64| (map >> 32, map & 0xffff_ffff);
    let ((a, b), (c, d)) = (half(first), half(second));
    let scale = a.wrapping_mul(c) & 0xffff_ffff;
    let shift = c.wrapping_mul(b).wrapping_add(d) & 0xffff_ffff;
    scale << 32 | shift
}

/// Composes such maps modulo 16, in a byte.
#[must_use]
pub fn affine_in_a_byte(first: u8, second: u8) -> u8 {
    let (a, b, c, d) = (first >> 4, first & 15, second >> 4, second & 15);
    ((a * c) & 15) << 4 | ((c * b + d) & 15)
}

/// Returns the bytes of an element in messages of this length.
#[must_use]
pub const fn element_bytes(bytes: usize) -> usize {
    if bytes.is_multiple_of(8) { 8 } else { 1 }
}

/// Returns the operator of a class for messages of this length.
///
/// # Panics
/// When the operator is not of that class, which is a mistake in this file.
#[must_use]
pub fn kernel(bytes: usize, class: OperatorClass) -> Kernel<'static> {
    let kernel = match (class, element_bytes(bytes)) {
        (OperatorClass::Commutative, 8) => Kernel::new::<u64, _>(&Sum),
        (OperatorClass::Commutative, _) => Kernel::new::<u8, _>(&Sum),
        (OperatorClass::Ordered, 8) => Kernel::new::<u64, _>(&affine),
        (OperatorClass::Ordered, _) => Kernel::new::<u8, _>(&affine_in_a_byte),
    };
    assert_eq!(kernel.class(), class);
    kernel
}

#[test]
fn operators_are_associative_and_not_commutative() {
    let mut random = Random(1);
    for _ in 0..1000 {
        let (a, b, c) = (random.next_word(), random.next_word(), random.next_word());
        assert_eq!(affine(affine(a, b), c), affine(a, affine(b, c)));
        assert_ne!(affine(a, b), affine(b, a));
        let [a, b, c] = [a, b, c].map(|word| word.to_le_bytes()[7]);
        let left = affine_in_a_byte(affine_in_a_byte(a, b), c);
        assert_eq!(left, affine_in_a_byte(a, affine_in_a_byte(b, c)));
    }
    assert_ne!(affine_in_a_byte(0x23, 0x31), affine_in_a_byte(0x31, 0x23));
}
