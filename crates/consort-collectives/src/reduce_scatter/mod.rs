//! Reduce-scatters: everyone's blocks `i` combined, on PE `i`. The registry of their algorithms.
//!
//! An operator need only be associative: all combine in the order of the ranks.

use consort_fabric::CallSpec;

use crate::{
    Setting,
    algorithm::registry,
    protocols::exchange::{Pass, Round},
};

registry! {
    direct: Direct,
    flat: Flat,
    pairwise: Pairwise,
    recursive_halving: RecursiveHalving,
}

/// The pieces of a block, one after the other: all as long, and what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pieces {
    /// Of a piece.
    bytes: usize,
    /// How many there are.
    whole: u32,
    /// Of a shorter one after them; 0 if there is none.
    rest: usize,
}

impl Pieces {
    /// Such that of `results` blocks a piece each fits the memory for partial results. `None` if no
    /// element does, or there are too many to count.
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

    /// How many messages they are, of so many a piece.
    fn messages(&self, of_piece: u32) -> Option<u32> {
        self.whole.checked_add(u32::from(self.rest > 0))?.checked_mul(of_piece)
    }

    /// The rounds of all, by those of a piece of which the offset, the length and the number of its
    /// first chunk are given. As many chunks are numbered for each, the last one too.
    fn passes(&self, chunks: u32, rounds: impl Fn(usize, usize, u32) -> Vec<Round>) -> Vec<Pass> {
        let Self { bytes, whole, rest } = *self;
        let mut passes = vec![Pass { rounds: rounds(0, bytes, 0), times: whole, bytes, chunks }];
        if rest > 0 {
            let rounds = rounds(whole as usize * bytes, rest, whole * chunks);
            passes.push(Pass { rounds, times: 1, bytes: 0, chunks: 0 });
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
