//! Exchanges: a block from everyone to everyone, MPI's all-to-all. The registry of their
//! algorithms.

use crate::algorithm::registry;

registry! {
    bruck: Bruck,
    direct: Direct,
    flat: Flat,
    pairwise: Pairwise,
}

#[cfg(test)]
mod tests {
    use consort_fabric::{Candidate, Collective};

    use super::*;
    use crate::{
        Algorithm,
        patterns::rounds::{
            Program,
            play::{Byte, play, setting, teams},
        },
    };

    /// Everyone has everyone's block for it, wherever an algorithm can serve; how often it can.
    fn exchanges<A: Algorithm<Schedule = Program>>(candidate: &Candidate) -> usize {
        let mut served = 0;
        for pes in teams() {
            for (bytes, lines) in [(0, 80), (8, 40), (8, 400), (57, 80), (100, 7)] {
                for buffered in [true, false] {
                    let lines = lines + pes;
                    let setting = setting(Collective::Exchange, pes, bytes, lines, buffered);
                    if A::schedule(&setting, candidate).is_err() {
                        continue;
                    }
                    served += 1;
                    let program = |setting| A::schedule(&setting, candidate).expect("as PE 0");
                    for (rank, target) in (0..pes).zip(play(&setting, program)) {
                        let block = |from: u32| {
                            (0..bytes).map(move |at| Byte::of(from, rank as usize * bytes + at))
                        };
                        let expected = (0..pes).flat_map(block);
                        assert!(target.into_iter().eq(expected), "{candidate}, {pes}, {bytes}");
                    }
                }
            }
        }
        served
    }

    #[test]
    fn everyone_has_its_block_of_everyone() {
        let all = teams().count() * 10;
        assert_eq!(exchanges::<Pairwise>(&Candidate::new("pairwise")), all);
        assert!(exchanges::<Flat>(&Candidate::new("flat")) > all / 4);
        for radix in [2, 3, 4, 8, 100] {
            let bruck = Candidate::new("bruck").with("radix", radix);
            assert!(exchanges::<Bruck>(&bruck) > all / 2);
        }
    }
}
