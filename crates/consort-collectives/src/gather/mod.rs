//! Gathers: everyone's block, to the root. The registry of their algorithms.

use crate::algorithm::registry;

registry! {
    direct: Direct,
    flat: Flat,
    knomial: Knomial,
    oc_bcast: OcBcast,
}

#[cfg(test)]
mod tests {
    use consort_fabric::{Candidate, Collective, Rank};

    use crate::{
        Algorithm, Setting,
        patterns::rounds::{
            Program,
            play::{Byte, play, setting, teams},
        },
    };

    /// The root has everyone's block in the end, in any inbox; what is served by a large one.
    fn gathers<A: Algorithm<Schedule = Program>>(candidate: &Candidate) {
        for pes in teams() {
            for (bytes, lines) in [(0, 3), (8, 4), (8, 600), (57, 8), (30, 30), (10, 4000)] {
                for buffered in [true, false] {
                    let lines = lines + 2 * pes;
                    let any = setting(Collective::Gather, pes, bytes, lines, buffered);
                    for root in [0, pes / 2, pes - 1].map(Rank) {
                        let setting = Setting { root, ..any };
                        if A::schedule(&setting, candidate).is_err() {
                            assert!(lines < 4000, "{candidate} {setting:?}");
                            continue;
                        }
                        let one = |setting| A::schedule(&setting, candidate).expect("as PE 0's");
                        let targets = play(&setting, one);
                        let block = |from| (0..bytes).map(move |at| Byte::of(from, at));
                        let is_it =
                            targets[root.index()].iter().copied().eq((0..pes).flat_map(block));
                        assert!(is_it, "{candidate} {setting:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_root_has_every_block_in_its_place() {
        gathers::<super::Flat>(&Candidate::new("flat"));
        for radix in [1, 2, 3, 4, 8, 100] {
            gathers::<super::Knomial>(&Candidate::new("knomial").with("radix", radix));
        }
    }
}
