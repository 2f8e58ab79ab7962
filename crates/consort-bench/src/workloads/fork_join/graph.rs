//! A graph of tiny operations, one after the other, with a barrier between each two.
//!
//! For each element of its result, an operation reads two elements of the previous vector, so every
//! thread needs data that the others have written. A library with a barrier runs the graph in one
//! region; others need a region for each operation.

use anyhow::Result;

use super::parts::{RegionProgram, each_step};
use crate::peers::fork_join::ForkJoin;

/// The operations. Their number is even, so that the last result is in the first vector.
const OPERATIONS: usize = 300;
/// The elements of a vector: one thread takes half a microsecond for an operation.
const LEN: usize = 512;

/// The results of the operations, alternately in the first and the second vector.
pub(super) struct Graph {
    vectors: [Vec<u32>; 2],
}

impl Graph {
    pub(super) fn new() -> Self {
        Self { vectors: [(1..).take(LEN).collect(), vec![0; LEN]] }
    }
}

impl RegionProgram for Graph {
    fn iterate(&mut self, threads: &mut dyn ForkJoin) -> Result<()> {
        let vectors = self.vectors.each_mut().map(Vec::as_mut_slice);
        each_step(threads, OPERATIONS, vectors, |step, from, first, part| {
            for (at, place) in (first..).zip(part) {
                // The second element is from another place in each operation.
                let other = from[(at + 37 * step + 1) % LEN];
                *place = from[at].wrapping_mul(31).wrapping_add(other);
            }
        })
    }

    fn results(&self) -> Vec<u64> {
        self.vectors[0].iter().map(|&value| value.into()).collect()
    }

    fn restart(&mut self) {
        *self = Self::new();
    }
}
