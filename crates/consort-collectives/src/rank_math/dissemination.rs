//! The rounds of dissemination: in round `i` of radix `k`, PE `r` signals `r + d k^i` for each
//! digit `d` from 1 to `k - 1`, and waits for `r - d k^i`, all modulo the number of PEs.
//!
//! After `ceil(log_k P)` rounds every PE has a signal from every other PE, directly or not
//! (Hensgen, Finkel and Manber 1988, for radix 2).

use consort_fabric::Rank;

/// One round: the PEs that a PE signals. It waits for the same number of signals.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Round {
    /// The PEs that it signals, ordered by digit.
    pub to: Vec<Rank>,
}

/// Returns the rounds of PE `rank` among `pes`, for a radix of at least 2.
#[must_use]
pub fn rounds(rank: Rank, pes: u32, radix: u32) -> Vec<Round> {
    let round = |power| {
        let distances = (1..radix as usize).map(|digit| digit * power);
        let distances = distances.take_while(|&far| far < pes as usize);
        Round { to: distances.map(|far| rank.plus(far, pes as usize)).collect() }
    };
    powers(pes, radix).map(round).collect()
}

/// Returns the number of rounds among `pes`, for a radix of at least 2.
#[must_use]
pub fn round_count(pes: u32, radix: u32) -> usize {
    powers(pes, radix).count()
}

/// Returns the powers of the radix below the number of PEs, one per round.
fn powers(pes: u32, radix: u32) -> impl Iterator<Item = usize> {
    let powers = std::iter::successors(Some(1), move |power| Some(power * radix as usize));
    powers.take_while(move |&power| power < pes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_the_radix_need_no_extra_round() {
        for (pes, radix, count) in [(216, 6, 3), (125, 5, 3), (126, 5, 4), (1, 2, 0), (9, 16, 1)] {
            assert_eq!(round_count(pes, radix), count, "{pes} {radix}");
            assert_eq!(rounds(Rank(0), pes, radix).len(), count, "{pes} {radix}");
        }
    }

    #[test]
    fn every_pe_learns_of_all_others() {
        for radix in [2, 3, 4, 8] {
            for pes in 1..70 {
                let mut heard: Vec<u128> = (0..pes).map(|rank| 1 << rank).collect();
                let all: Vec<_> = (0..pes).map(|rank| rounds(Rank(rank), pes, radix)).collect();
                for round in 0..all[0].len() {
                    let before = heard.clone();
                    for (rank, rounds) in all.iter().enumerate() {
                        for to in &rounds[round].to {
                            heard[to.index()] |= before[rank];
                        }
                    }
                }
                assert!(heard.iter().all(|&known| known.count_ones() == pes), "{pes} {radix}");
            }
        }
    }
}
