//! The registry of reduce-scatters, which combine block `i` of every PE on PE `i`.
//!
//! An operator need only be associative. If it is not commutative, all algorithms combine in rank
//! order.

use consort_fabric::CallSpec;

use crate::{
    Setting,
    algorithm::registry,
    barrier_get::BarrierGet,
    protocols::exchange::{Round, RoundLoop},
};

registry! {
    direct: Direct,
    flat: Flat,
    pairwise: Pairwise,
    recursive_halving: RecursiveHalving;
    use BarrierGet;
    Any of ReduceScatter;
    two_level: TwoLevel,
}

/// The pieces of a block: pieces of equal length, and a shorter rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Pieces {
    /// The length of a piece, in bytes.
    bytes: usize,
    /// The number of pieces of that length.
    whole: u32,
    /// The length of the rest, in bytes; 0 if there is none.
    rest: usize,
}

impl Pieces {
    /// Creates pieces such that one piece of each of `results` blocks fits the scratch memory.
    /// Returns `None` if no element fits, or there are too many pieces to count.
    fn new(setting: &Setting, results: u32) -> Option<Self> {
        let Setting { call: CallSpec { bytes, element_bytes, .. }, .. } = *setting;
        let scratch = setting.capabilities.scratch_bytes.checked_div(results as usize);
        let Some(most) = scratch.filter(|&most| most < bytes) else {
            return Some(Self { bytes, whole: 1, rest: 0 });
        };
        let element = element_bytes.max(1);
        let length = most / element * element;
        let whole = u32::try_from(bytes.checked_div(length)?).ok()?;
        Some(Self { bytes: length, whole, rest: bytes % length })
    }

    /// Returns the number of messages, with `of_piece` messages per piece.
    fn messages(&self, of_piece: u32) -> Option<u32> {
        self.whole.checked_add(u32::from(self.rest > 0))?.checked_mul(of_piece)
    }

    /// Returns the passes over all pieces. `rounds` returns the rounds of a piece, given its
    /// offset, its length and the number of its first chunk. Each piece, including the rest, has
    /// `chunks` chunk numbers.
    fn passes(
        &self,
        chunks: u32,
        rounds: impl Fn(usize, usize, u32) -> Vec<Round>,
    ) -> Vec<RoundLoop> {
        let Self { bytes, whole, rest } = *self;
        let mut passes =
            vec![RoundLoop { rounds: rounds(0, bytes, 0), times: whole, bytes, chunks }];
        if rest > 0 {
            let rounds = rounds(whole as usize * bytes, rest, whole * chunks);
            passes.push(RoundLoop { rounds, times: 1, bytes: 0, chunks: 0 });
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use consort_fabric::{CallSpec, Collective, OperatorClass};

    use super::*;
    use crate::protocols::exchange::tests::setting;

    #[test]
    fn pieces_are_whole_elements_that_fit() {
        let setting = setting(Collective::ReduceScatter, 4, 240, 40, true);
        let call = CallSpec { element_bytes: 24, ..setting.call };
        let of = |results, scratch_bytes| {
            let capabilities =
                consort_fabric::Capabilities { scratch_bytes, ..setting.capabilities };
            Pieces::new(&Setting { call, capabilities, ..setting }, results)
        };
        let pieces = |bytes, whole, rest| Some(Pieces { bytes, whole, rest });
        assert_eq!(of(0, 10), pieces(240, 1, 0));
        assert_eq!(of(2, 480), pieces(240, 1, 0));
        assert_eq!(of(2, 479), pieces(216, 1, 24));
        assert_eq!(of(2, 160), pieces(72, 3, 24));
        assert_eq!(of(2, 161), pieces(72, 3, 24));
        assert_eq!(of(2, 240), pieces(120, 2, 0));
        assert_eq!(of(2, 47), None);
        assert_eq!(setting.call.class, OperatorClass::Ordered);
    }
}
