//! Reduce-scatters: everyone's blocks `i` combined, on PE `i`. The registry of their algorithms.
//!
//! An operator need only be associative: all combine in the order of the ranks.

use crate::{Setting, algorithm::registry};

registry! {
    direct: Direct,
    flat: Flat,
    pairwise: Pairwise,
    recursive_halving: RecursiveHalving,
}

/// The pieces of a block, offset and length in bytes, such that of `results` blocks a piece each
/// fits the memory for partial results. `None` if no element does.
fn pieces(setting: &Setting, results: u32) -> Option<Vec<(usize, usize)>> {
    let Setting { bytes, element_bytes, .. } = *setting;
    let scratch = setting.capabilities.scratch_bytes.checked_div(results as usize);
    let Some(most) = scratch.filter(|&most| most < bytes) else { return Some(vec![(0, bytes)]) };
    let element = element_bytes.max(1);
    let length = most / element * element;
    (length > 0)
        .then(|| (0..bytes).step_by(length).map(|at| (at, length.min(bytes - at))).collect())
}

#[cfg(test)]
mod tests {
    use consort_fabric::{Candidate, Collective, OperatorClass};

    use super::*;
    use crate::{
        Algorithm,
        patterns::rounds::{
            Program,
            play::{Byte, play, setting},
        },
    };

    fn teams() -> impl Iterator<Item = u32> {
        (1..10).chain([16, 17])
    }

    /// Everyone has its block of everyone's, combined in the order of the ranks, wherever an
    /// algorithm can serve; how often it can.
    fn combines<A: Algorithm<Schedule = Program>>(name: &str) -> usize {
        let (candidate, mut served) = (Candidate::new(name), 0);
        for pes in teams() {
            for (bytes, lines) in [(0, 80), (8, 40), (8, 400), (57, 80), (100, 7), (1100, 40)] {
                for buffered in [true, false] {
                    let lines = lines + pes;
                    let setting = setting(Collective::ReduceScatter, pes, bytes, lines, buffered);
                    if A::schedule(&setting, &candidate).is_err() {
                        continue;
                    }
                    served += 1;
                    let program = |setting| A::schedule(&setting, &candidate).expect("as PE 0");
                    for (rank, target) in (0..pes).zip(play(&setting, program)) {
                        let sum = |at| {
                            let place = rank as usize * bytes + at;
                            let all = (0..pes).map(|from| Byte::of(from, place));
                            all.reduce(Byte::then).expect("at least one")
                        };
                        let expected = (0..bytes).map(sum);
                        assert!(target.into_iter().eq(expected), "{name}, {pes}, {bytes}");
                    }
                }
            }
        }
        served
    }

    #[test]
    fn everyone_has_its_block_combined_in_the_order_of_the_ranks() {
        let all = teams().count() * 12;
        assert_eq!(combines::<Pairwise>("pairwise"), all);
        assert!(combines::<Flat>("flat") > all / 8);
        let powers = teams().filter(|pes| pes.is_power_of_two()).count() * 12;
        assert!(combines::<RecursiveHalving>("recursive_halving") > powers / 2);
    }

    #[test]
    fn pieces_are_whole_elements_that_fit() {
        let setting =
            Setting { element_bytes: 24, ..setting(Collective::ReduceScatter, 4, 240, 40, true) };
        let of = |results, scratch_bytes| {
            let capabilities =
                consort_fabric::Capabilities { scratch_bytes, ..setting.capabilities };
            pieces(&Setting { capabilities, ..setting }, results)
        };
        assert_eq!(of(0, 10), Some(vec![(0, 240)]));
        assert_eq!(of(2, 480), Some(vec![(0, 240)]));
        assert_eq!(of(2, 479), Some(vec![(0, 216), (216, 24)]));
        assert_eq!(of(2, 47), None);
        assert_eq!(setting.operator, OperatorClass::Ordered);
    }
}
