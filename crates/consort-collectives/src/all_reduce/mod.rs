//! All-reduce: everyone's data combined, on everyone. The registry of its algorithms.
//!
//! `flat` and `recursive_doubling` exchange whole messages, `rabenseifner` and `ring` parts of
//! them; `direct` and `shared` work in the callers' buffers; the others are compositions. An
//! operator need only be associative: all but `ring`, which then refuses, combine in the order of
//! the ranks.

use consort_fabric::{Collective, Query};

use crate::algorithm::registry;

registry! {
    chain: Chain,
    direct: Direct,
    flat: Flat,
    knomial: Knomial,
    oc_bcast: OcBcast,
    rabenseifner: Rabenseifner,
    recursive_doubling: RecursiveDoubling,
    reduce_scatter_all_gather: ReduceScatterAllGather,
    ring: Ring,
    shared: Shared,
}

/// What a reduction and a broadcast are asked for, by a query about both.
fn reduce_and_broadcast(query: &Query) -> (Query, Query) {
    let part = |collective| Query { collective, ..*query };
    (part(Collective::Reduce), part(Collective::Broadcast))
}

#[cfg(test)]
mod tests {
    use consort_fabric::{Candidate, OperatorClass};

    use super::*;
    use crate::{
        Algorithm, Setting,
        patterns::rounds::{
            Program,
            play::{Byte, play, setting},
        },
    };

    /// What everyone's target is, for each number of PEs, at all sizes that an algorithm can serve.
    fn results<A: Algorithm<Schedule = Program>>(
        operator: OperatorClass,
        check: impl Fn(u32, usize, Byte),
    ) {
        let candidate = Candidate::new(A::NAME);
        for pes in (2..20).chain([33]) {
            for (bytes, lines) in [(67, 400), (70, 80), (100, 10), (500, 12), (1100, 40)] {
                for buffered in [true, false] {
                    let lines = lines + pes;
                    let setting = setting(Collective::AllReduce, pes, bytes, lines, buffered);
                    // The tuner's questions tell no element, so the last one may be cut off.
                    let setting =
                        Setting { operator, element_bytes: 1 + pes as usize % 3, ..setting };
                    let program = |setting| A::schedule(&setting, &candidate).expect("it fits");
                    for target in play(&setting, program) {
                        assert_eq!(target.len(), bytes);
                        target.into_iter().enumerate().for_each(|(at, sum)| check(pes, at, sum));
                    }
                }
            }
        }
    }

    fn in_order(ranks: impl Iterator<Item = u32>, at: usize) -> Byte {
        ranks.map(|from| Byte::of(from, at)).reduce(Byte::then).expect("at least one")
    }

    #[test]
    fn halving_keeps_the_order_of_the_ranks() {
        results::<Rabenseifner>(OperatorClass::Ordered, |pes, at, sum| {
            assert_eq!(sum, in_order(0..pes, at), "{pes} PEs, {at}");
        });
    }

    #[test]
    fn around_a_ring_each_byte_has_passed_everyone_once() {
        results::<Ring>(OperatorClass::Commutative, |pes, at, sum| {
            let from = |first: u32| in_order((0..pes).map(move |i| (first + pes - i) % pes), at);
            assert!((0..pes).any(|first| sum == from(first)), "{pes} PEs, {at}");
        });
    }
}
