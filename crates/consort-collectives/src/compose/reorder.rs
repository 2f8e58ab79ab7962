//! Reordering the blocks of a PE, between two parts of a call.
//!
//! Within one buffer, blocks move along the cycles of the permutation, and one block of each cycle
//! is kept in spare memory (Windley, "Transposing matrices in a digital computer", 1959). Between
//! two buffers, each block is copied to its place. If a block is longer than the spare memory, all
//! blocks are moved piece by piece.

use consort_fabric::{Local, Op, Span};

use super::sub::Buffer;

#[derive(Hash)]
pub(super) struct Reorder {
    from: Buffer,
    to: Buffer,
    /// Bytes of a block.
    bytes: usize,
    /// Bytes of a piece of a block.
    piece: usize,
    /// The copies in order. Each is from the block with the first number to the place of the block
    /// with the second.
    moves: Vec<[u32; 2]>,
}

/// The number of the spare memory.
const SPARE: u32 = u32::MAX;

/// Returns the moves within one buffer that fill block `k` with block `order[k]`.
fn cycles(order: &[u32]) -> Vec<[u32; 2]> {
    let mut moves = Vec::new();
    let mut is_filled = vec![false; order.len()];
    for (first, _) in (0..).zip(order).filter(|&(at, &of)| at != of) {
        if is_filled[first as usize] {
            continue;
        }
        moves.push([first, SPARE]);
        let mut at = first;
        loop {
            is_filled[at as usize] = true;
            let of = order[at as usize];
            moves.push([if of == first { SPARE } else { of }, at]);
            if of == first {
                break;
            }
            at = of;
        }
    }
    moves
}

impl Reorder {
    /// Plans to fill block `k` of `to`, of `bytes` bytes, with block `order[k]` of `from`. The two
    /// are the same buffer, or do not overlap. The first `spare` bytes of the memory for incoming
    /// messages, at least one, are the spare memory.
    pub(super) fn new([from, to]: [Buffer; 2], order: &[u32], bytes: usize, spare: usize) -> Self {
        if from == to {
            return Self { from, to, bytes, piece: bytes.min(spare), moves: cycles(order) };
        }
        let moves = (0..).zip(order).map(|(at, &of)| [of, at]).collect();
        Self { from, to, bytes, piece: bytes, moves }
    }

    pub(super) async fn run<F: Local>(&self, f: &F) -> Op {
        for done in (0..self.bytes).step_by(self.piece.max(1)) {
            let bytes = self.piece.min(self.bytes - done);
            let span = |buffer: Buffer, block: u32| match block {
                SPARE => Span::incoming(bytes),
                _ => {
                    let at = buffer.first + block as usize * self.bytes + done;
                    Span { place: buffer.place, at, bytes }
                }
            };
            for &[of, at] in &self.moves {
                f.copy(span(self.to, at), span(self.from, of)).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permutations(count: u32) -> Vec<Vec<u32>> {
        let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
        let with_last = |shorter: Vec<u32>| {
            (0..=shorter.len()).map(move |at| {
                let mut longer = shorter.clone();
                longer.insert(at, last);
                longer
            })
        };
        permutations(last).into_iter().flat_map(with_last).collect()
    }

    #[test]
    fn cycles_fill_each_block() {
        for order in (0..7).flat_map(permutations) {
            let mut blocks: Vec<u32> = (0..).take(order.len()).collect();
            let mut spare = None;
            for [of, at] in cycles(&order) {
                let block = if of == SPARE { spare.take() } else { Some(blocks[of as usize]) };
                let block = block.expect("the spare memory is filled before it is read");
                if at == SPARE { spare = Some(block) } else { blocks[at as usize] = block }
            }
            assert_eq!(blocks, order);
        }
    }
}
