//! All-gathers: everyone's block, to everyone. The registry of their algorithms.

use crate::algorithm::registry;

registry! {
    all_broadcast: AllBroadcast,
    bruck: Bruck,
    direct: Direct,
    flat: Flat,
    gather_broadcast: GatherBroadcast,
    neighbour_exchange: NeighbourExchange,
    recursive_doubling: RecursiveDoubling,
    ring: Ring,
}

#[cfg(test)]
mod tests {
    use consort_fabric::{Candidate, Collective};

    use crate::{
        Algorithm,
        patterns::rounds::{
            Program,
            play::{Byte, play, setting, teams},
        },
    };

    /// Everyone has everyone's block in the end, in any inbox that can serve; and those of `served`
    /// teams can be, with a small one.
    fn gathers<A: Algorithm<Schedule = Program>>(candidate: &Candidate, served: fn(u32) -> bool) {
        for pes in teams() {
            for (bytes, lines) in [(0, 3), (8, 4), (8, 600), (57, 8), (300, 30), (300, 4000)] {
                for buffered in [true, false] {
                    let lines = lines + 2 * pes;
                    let setting = setting(Collective::AllGather, pes, bytes, lines, buffered);
                    if A::schedule(&setting, candidate).is_err() {
                        assert!(!served(pes), "{candidate} {setting:?}");
                        continue;
                    }
                    let one = |setting| A::schedule(&setting, candidate).expect("as PE 0's");
                    for (rank, target) in play(&setting, one).into_iter().enumerate() {
                        let block = |from| (0..bytes).map(move |at| Byte::of(from, at));
                        let is_it = target.into_iter().eq((0..pes).flat_map(block));
                        assert!(is_it, "{candidate} PE {rank} {setting:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn everyone_has_every_block_in_its_place() {
        gathers::<super::Ring>(&Candidate::new("ring"), |_| true);
        gathers::<super::Flat>(&Candidate::new("flat"), |_| true);
        gathers::<super::RecursiveDoubling>(
            &Candidate::new("recursive_doubling"),
            u32::is_power_of_two,
        );
        gathers::<super::NeighbourExchange>(&Candidate::new("neighbour_exchange"), |pes| {
            pes.is_multiple_of(2)
        });
        for radix in [2, 3, 4, 8, 100] {
            gathers::<super::Bruck>(&Candidate::new("bruck").with("radix", radix), |_| true);
        }
    }
}
