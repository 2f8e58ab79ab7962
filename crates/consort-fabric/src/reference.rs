//! The results of collectives, computed by one PE alone: the oracle of tests and benchmarks.

use crate::{Collective, Kernel, Rank};

/// Returns the result of PE `me` in a team of `pes`, if it receives any. Contributions are combined
/// in rank order.
///
/// `block(rank, index)` returns block `index` of the contribution of PE `rank`; all blocks have the
/// same length.
///
/// # Panics
/// When a collective that combines has no kernel.
pub fn result(
    collective: Collective,
    pes: u32,
    me: Rank,
    root: Rank,
    kernel: Option<&Kernel<'_>>,
    block: impl Fn(Rank, u32) -> Vec<u8>,
) -> Option<Vec<u8>> {
    let everyone = || (0..pes).map(Rank);
    let combined = |ranks: u32, index: u32| {
        let kernel = kernel.expect("an operator to combine with");
        let mut blocks = (0..ranks).map(|rank| block(Rank(rank), index));
        let mut sum = blocks.next()?;
        blocks.for_each(|block| kernel.accumulate(&mut sum, &block));
        Some(sum)
    };
    let is_root = me == root;
    if collective.target_blocks(pes, is_root) == 0 {
        return None;
    }
    match collective.regular() {
        Collective::Barrier => None,
        Collective::Broadcast => Some(block(root, 0)),
        Collective::Scatter => Some(block(root, me.0)),
        Collective::Gather | Collective::AllGather => {
            Some(everyone().flat_map(|rank| block(rank, 0)).collect())
        }
        Collective::AllToAll => Some(everyone().flat_map(|rank| block(rank, me.0)).collect()),
        Collective::Reduce | Collective::AllReduce => combined(pes, 0),
        Collective::ReduceScatter => combined(pes, me.0),
        Collective::Scan => combined(me.0 + 1, 0),
        Collective::ExclusiveScan => combined(me.0, 0),
        vector => unreachable!("{vector} is not regular"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sum;

    #[test]
    fn results_of_three_pes_are_those_worked_out_by_hand() {
        let of = |collective, me| {
            let kernel = Kernel::new::<u8, _>(&Sum);
            let block = |rank: Rank, index| vec![u8::try_from(10 * rank.0 + index).expect("few")];
            result(collective, 3, Rank(me), Rank(1), Some(&kernel), block)
        };
        assert_eq!(of(Collective::Barrier, 0), None);
        assert_eq!(
            (of(Collective::Broadcast, 0), of(Collective::Broadcast, 1)),
            (Some(vec![10]), None)
        );
        assert_eq!(
            (of(Collective::Scatter, 1), of(Collective::Scatter, 2)),
            (Some(vec![11]), Some(vec![12]))
        );
        assert_eq!(
            (of(Collective::Gather, 1), of(Collective::Gather, 2)),
            (Some(vec![0, 10, 20]), None)
        );
        assert_eq!(of(Collective::AllGather, 2), Some(vec![0, 10, 20]));
        assert_eq!(of(Collective::AllToAll, 2), Some(vec![2, 12, 22]));
        assert_eq!((of(Collective::Reduce, 1), of(Collective::Reduce, 0)), (Some(vec![30]), None));
        assert_eq!(of(Collective::AllReduce, 0), Some(vec![30]));
        assert_eq!(of(Collective::ReduceScatter, 2), Some(vec![36]));
        assert_eq!(
            (of(Collective::Scan, 0), of(Collective::Scan, 2)),
            (Some(vec![0]), Some(vec![30]))
        );
        assert_eq!(
            (of(Collective::ExclusiveScan, 0), of(Collective::ExclusiveScan, 2)),
            (None, Some(vec![10]))
        );
    }
}
