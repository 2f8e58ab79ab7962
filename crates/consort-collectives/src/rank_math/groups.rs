//! Recursive multiplying: in round `i` of radix `k`, the nodes whose numbers differ only in digit
//! `i`, in base `k`, form a group. All members of a group exchange what they have.
//!
//! For `P` PEs and the largest power `k^n <= P`, there are `m k^n` nodes with `m = floor(P / k^n)`:
//! `n` rounds have groups of `k`, and one more round has groups of `m` if `m > 1`. The other PEs,
//! fewer than `k^n`, are not nodes. Every node has a range of consecutive nodes before each round,
//! and the ranges of a group's members follow each other in the order of their numbers.
//!
//! Source: Ruefenacht, Bull and Booth 2017, "Generalisation of recursive doubling for AllReduce",
//! which combines such rounds with others that fold PEs.

/// A node's group in one round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// The other members, in ascending order.
    pub others: Vec<u32>,
    /// How many of them have lower numbers.
    pub lower: u32,
}

/// Returns the sizes of the groups, one for each round, for a radix of at least 2. Their product is
/// the number of nodes.
#[must_use]
pub fn sizes(pes: u32, radix: u32) -> Vec<u32> {
    let rounds = pes.max(1).ilog(radix);
    let last = pes.max(1) / radix.pow(rounds);
    let mut sizes = vec![radix; rounds as usize];
    sizes.extend((last > 1).then_some(last));
    sizes
}

/// Returns the groups of a node, one for each round with groups of these sizes.
#[must_use]
pub fn groups(node: u32, sizes: &[u32]) -> Vec<Group> {
    let mut distance = 1;
    let group = |&size: &u32| {
        let lower = node / distance % size;
        let first = node - lower * distance;
        let digits = (0..size).filter(|&digit| digit != lower);
        let group = Group { others: digits.map(|digit| first + digit * distance).collect(), lower };
        distance *= size;
        group
    };
    sizes.iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RADICES: [u32; 6] = [2, 3, 4, 5, 8, 1 << 16];

    #[test]
    fn fewer_pes_are_left_than_the_largest_power() {
        for radix in RADICES {
            for pes in 1..300 {
                let nodes: u32 = sizes(pes, radix).iter().product();
                assert!(
                    nodes <= pes && pes - nodes < radix.pow(pes.ilog(radix)),
                    "{pes} {radix}: {nodes}"
                );
                assert!(radix > 2 || nodes.is_power_of_two(), "{pes}: {nodes}");
            }
        }
        for (pes, radix, expected) in [
            (1, 2, &[][..]),
            (13, 2, &[2, 2, 2]),
            (16, 8, &[8, 2]),
            (32, 4, &[4, 4, 2]),
            (96, 4, &[4, 4, 4]),
            (192, 8, &[8, 8, 3]),
            (5, 8, &[5]),
        ] {
            assert_eq!(sizes(pes, radix), expected, "{pes} {radix}");
        }
    }

    #[test]
    fn groups_join_neighbouring_ranges_in_order() {
        for radix in RADICES {
            for pes in 1..100 {
                let sizes = sizes(pes, radix);
                let nodes: u32 = sizes.iter().product();
                let all: Vec<_> = (0..nodes).map(|node| groups(node, &sizes)).collect();
                let mut known: Vec<_> = (0..nodes).map(|node| node..node + 1).collect();
                for (round, &size) in sizes.iter().enumerate() {
                    let before = known.clone();
                    for (node, groups) in (0..).zip(&all) {
                        let Group { others, lower } = &groups[round];
                        let (lower, higher) = others.split_at(*lower as usize);
                        assert_eq!(others.len() + 1, size as usize);
                        let members = lower.iter().chain([&node]).chain(higher);
                        let mut end = before[*lower.first().unwrap_or(&node) as usize].start;
                        let start = end;
                        for &member in members {
                            let range = &before[member as usize];
                            assert_eq!(range.start, end, "{pes} {radix} {node}");
                            end = range.end;
                        }
                        known[node as usize] = start..end;
                    }
                }
                assert!(known.iter().all(|range| *range == (0..nodes)), "{pes} {radix}");
            }
        }
    }

    #[test]
    fn partners_of_radix_two_differ_in_one_bit() {
        for pes in 1..70 {
            let sizes = sizes(pes, 2);
            for node in 0..1 << sizes.len() {
                for (round, Group { others, lower }) in groups(node, &sizes).iter().enumerate() {
                    let other = node ^ (1 << round);
                    assert_eq!((others, *lower), (&vec![other], u32::from(other < node)));
                }
            }
        }
    }
}
