//! Scatters: block `i` of the root, to PE `i`. The registry of their algorithms.

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

    /// Everyone has its block in the end, in any inbox; what is served by a large one.
    fn scatters<A: Algorithm<Schedule = Program>>(candidate: &Candidate) {
        for pes in teams() {
            for (bytes, lines) in [(0, 3), (8, 4), (8, 600), (57, 8), (30, 30), (10, 4000)] {
                for buffered in [true, false] {
                    let lines = lines + 2 * pes;
                    let any = setting(Collective::Scatter, pes, bytes, lines, buffered);
                    for root in [0, pes / 2, pes - 1].map(Rank) {
                        let setting = Setting { root, ..any };
                        if A::schedule(&setting, candidate).is_err() {
                            assert!(lines < 4000, "{candidate} {setting:?}");
                            continue;
                        }
                        let one = |setting| A::schedule(&setting, candidate).expect("as PE 0's");
                        let targets = play(&setting, one);
                        for (rank, target) in targets.into_iter().enumerate() {
                            let block = |at| Byte::of(root.0, rank * bytes + at);
                            let is_it = target.into_iter().eq((0..bytes).map(block));
                            assert!(is_it, "{candidate} PE {rank} {setting:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn everyone_has_its_block() {
        scatters::<super::Flat>(&Candidate::new("flat"));
        for radix in [1, 2, 3, 4, 8, 100] {
            scatters::<super::Knomial>(&Candidate::new("knomial").with("radix", radix));
        }
    }
}
