//! A message of more than a gigabyte, between slices, with the automatically chosen algorithm.

use consort::{Job, Rank, tune::Collective};
use consort_conformance::turns::{LIMIT, alone};

/// Eight bytes more than 2^30.
const WORDS: usize = (1 << 27) + 1;

/// Returns a word that differs from that of any other index.
fn word(index: usize) -> u64 {
    (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns both ends, neighbours of powers of two, and indices that no chunk length divides.
fn places() -> impl Iterator<Item = usize> {
    let powers = (0..=27).flat_map(|power| [(1 << power) - 1, 1 << power]);
    powers.chain((0..WORDS).step_by(999_983))
}

#[test]
fn a_gigabyte_arrives_whole() {
    let all = alone(LIMIT, || {
        Job::threads(2).run(|pe| {
            let (world, root) = (pe.world(), Rank(1));
            let mut data: Vec<u64> =
                if world.rank() == root { (0..WORDS).map(word).collect() } else { vec![0; WORDS] };
            world.in_place(&mut data).broadcast(root)?;
            assert!(places().all(|place| data[place] == word(place)));
            let sum = data.iter().fold(0, |sum: u64, &word| sum.wrapping_add(word));
            Ok((sum, world.algorithms().served_by(Collective::Broadcast)))
        })
    });
    let all = all.expect("a job that goes well");
    let sum = word(WORDS * (WORDS / 2)); // the sum of an odd number of consecutive words from 0
    for (rank, (found, by)) in all.into_ranked() {
        assert_eq!(found, sum, "PE {rank}, by {by:?}");
    }
}
