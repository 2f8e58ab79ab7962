//! The queries that a search tunes. The most useful ones come first, because a search may stop
//! early.

use std::collections::{BTreeSet, VecDeque};

use consort_fabric::{Collective, OperatorClass, Query, SyncModes};

use crate::query::canonical;

/// A grid of queries: every combination of the values in its lists. In each list except `bytes`,
/// the most important value comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The collectives.
    pub collectives: Vec<Collective>,
    /// The synchronization modes.
    pub syncs: Vec<SyncModes>,
    /// The team sizes.
    pub pes: Vec<u32>,
    /// The message sizes in bytes, ascending.
    pub bytes: Vec<u64>,
    /// The operator classes, for collectives that combine.
    pub operators: Vec<OperatorClass>,
    /// Whether buffers lie in symmetric memory.
    pub symmetric: Vec<bool>,
}

/// The number of collectives that are interleaved before the less common ones follow.
const AT_A_TIME: usize = 4;
/// The number of modes that come before all others.
const MODES_AT_A_TIME: usize = 3;

impl Grid {
    /// Every collective on blocks of equal length, the most common ones first.
    pub const COLLECTIVES: [Collective; 11] = [
        Collective::Barrier,
        Collective::Broadcast,
        Collective::Reduce,
        Collective::AllReduce,
        Collective::AllGather,
        Collective::AllToAll,
        Collective::Gather,
        Collective::Scatter,
        Collective::ReduceScatter,
        Collective::Scan,
        Collective::ExclusiveScan,
    ];

    /// The sizes of a coarse grid; the search refines it where the winner changes.
    pub const COARSE_BYTES: [u64; 8] = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20];

    /// The modes that have names, the most common one first.
    pub const NAMED_SYNCS: [SyncModes; 3] = [SyncModes::MINE, SyncModes::STRICT, SyncModes::LOOSE];

    /// Returns all nine modes, the named ones first.
    #[must_use]
    pub fn every_sync() -> Vec<SyncModes> {
        let others = SyncModes::every().filter(|sync| !Self::NAMED_SYNCS.contains(sync));
        Self::NAMED_SYNCS.into_iter().chain(others).collect()
    }

    /// Creates a grid of all collectives, the three named modes, teams of `cores` and of every
    /// smaller power of two, and then the `oversubscribed` teams.
    #[must_use]
    pub fn new(cores: usize, oversubscribed: &[u32]) -> Self {
        let cores = u32::try_from(cores).unwrap_or(u32::MAX);
        let powers = (1..32).map(|power| 1_u32 << power).take_while(|&pes| pes < cores);
        let mut pes: Vec<u32> = powers.collect();
        if cores >= 2 {
            pes.push(cores);
        }
        pes.reverse();
        pes.extend_from_slice(oversubscribed);
        if pes.is_empty() {
            pes.push(2);
        }
        Self {
            collectives: Self::COLLECTIVES.to_vec(),
            syncs: Self::NAMED_SYNCS.to_vec(),
            pes,
            bytes: Self::COARSE_BYTES.to_vec(),
            operators: vec![OperatorClass::Commutative],
            symmetric: vec![true, false],
        }
    }

    /// Returns all queries, each once: those of the first three modes, then of the next three, and
    /// so on. Within these, they are ordered by the sum of their values' positions in the lists,
    /// where collectives count in groups of four. Queries of one group that differ only in
    /// collective and size are interleaved; the smallest and the largest size come first.
    #[must_use]
    pub fn points(&self) -> Vec<Query> {
        let mut ranked = Vec::new();
        for (sync_rank, &sync) in self.syncs.iter().enumerate() {
            let tier = sync_rank / MODES_AT_A_TIME;
            for (pes_rank, &pes) in self.pes.iter().enumerate() {
                for (operator_rank, &operator) in self.operators.iter().enumerate() {
                    for (memory_rank, &symmetric) in self.symmetric.iter().enumerate() {
                        let rank = sync_rank + pes_rank + operator_rank + memory_rank;
                        for bytes in ends_first(&self.bytes) {
                            ranked.extend(self.collectives.iter().enumerate().map(
                                |(place, &collective)| {
                                    let query =
                                        Query { collective, sync, pes, bytes, operator, symmetric };
                                    ((tier, rank + place / AT_A_TIME), canonical(&query))
                                },
                            ));
                        }
                    }
                }
            }
        }
        ranked.sort_by_key(|&(rank, _)| rank);
        let mut seen = BTreeSet::new();
        ranked.into_iter().map(|(_, query)| query).filter(|&query| seen.insert(query)).collect()
    }
}

/// Returns the first, the last, the middle, the middles of both halves, and so on.
fn ends_first(ascending: &[u64]) -> Vec<u64> {
    let Some(last) = ascending.len().checked_sub(1) else { return Vec::new() };
    let mut order = vec![ascending[0]];
    if last > 0 {
        order.push(ascending[last]);
    }
    let mut spans = VecDeque::from([(0, last)]);
    while let Some((low, high)) = spans.pop_front() {
        if high - low >= 2 {
            let middle = low.midpoint(high);
            order.push(ascending[middle]);
            spans.extend([(low, middle), (middle, high)]);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_listed_once_ends_first() {
        assert_eq!(ends_first(&[]), []);
        assert_eq!(ends_first(&[5]), [5]);
        assert_eq!(ends_first(&[1, 2, 3, 4, 5]), [1, 5, 3, 2, 4]);
    }

    #[test]
    fn teams_are_the_powers_of_two_and_the_cores() {
        assert_eq!(Grid::new(6, &[12]).pes, [6, 4, 2, 12]);
        assert_eq!(Grid::new(2, &[]).pes, [2]);
        assert_eq!(Grid::new(1, &[]).pes, [2]);
        assert_eq!(Grid::new(1, &[4]).pes, [4]);
    }

    #[test]
    fn points_are_distinct_and_start_with_the_common_case() {
        let points = Grid::new(4, &[16]).points();
        // For each team: one barrier; for each other collective 3 modes x 8 sizes x 2 memories.
        let moving = Grid::COLLECTIVES.len() - 1;
        assert_eq!(points.len(), 3 * (1 + 48 * moving));
        let distinct: BTreeSet<_> = points.iter().collect();
        assert_eq!(distinct.len(), points.len());
        let first_row = &points[..1 + 8 * (AT_A_TIME - 1)];
        let all = BTreeSet::from(Grid::COLLECTIVES);
        assert_eq!(all, Collective::regulars().collect());
        assert!(first_row.iter().all(|query| query.pes == 4 && query.symmetric));
        assert!(first_row[1..].iter().all(|query| query.sync == SyncModes::MINE));
    }

    #[test]
    fn modes_without_a_name_come_last() {
        let grid = Grid { syncs: Grid::every_sync(), ..Grid::new(4, &[16]) };
        let (points, named) = (grid.points(), Grid::new(4, &[16]).points());
        assert_eq!(grid.syncs.len(), 9);
        assert_eq!(points[..named.len()], named);
        let distinct: BTreeSet<_> = points.iter().collect();
        let moving = Grid::COLLECTIVES.len() - 1;
        assert_eq!(distinct.len(), 3 * (1 + 9 * 16 * moving));
    }
}
