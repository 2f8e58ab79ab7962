//! Workloads: the queries that a search or a check measures, and their shares of the time.

use std::collections::BTreeMap;

use consort_fabric::Query;

use crate::{Grid, query::canonical};

/// Queries, each once, the most important first, with their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    points: Vec<(Query, f64)>,
    refines: bool,
}

impl Workload {
    /// Creates a workload of exactly these queries. A query's weight is positive, for example the
    /// time that a program spends in its calls; the largest come first.
    #[must_use]
    pub fn exactly(weighted: impl IntoIterator<Item = (Query, f64)>) -> Self {
        let mut weights: BTreeMap<Query, f64> = BTreeMap::new();
        for (query, weight) in weighted {
            *weights.entry(canonical(&query)).or_default() += weight;
        }
        let mut points: Vec<(Query, f64)> = weights.into_iter().collect();
        points.sort_by(|(a, a_weight), (b, b_weight)| {
            b_weight.total_cmp(a_weight).then_with(|| a.cmp(b))
        });
        Self { points, refines: false }
    }

    /// Returns the queries and their weights.
    #[must_use]
    pub fn points(&self) -> &[(Query, f64)] {
        &self.points
    }

    /// Returns the queries.
    pub fn queries(&self) -> impl ExactSizeIterator<Item = Query> + '_ {
        self.points.iter().map(|(query, _)| *query)
    }

    /// Returns whether a search also measures sizes between two queries with different winners.
    pub(crate) const fn refines(&self) -> bool {
        self.refines
    }
}

/// All queries of a grid, with equal weights, and sizes between them where the winner changes.
impl From<&Grid> for Workload {
    fn from(grid: &Grid) -> Self {
        let points = grid.points().into_iter().map(|query| (query, 1.0)).collect();
        Self { points, refines: true }
    }
}

/// For each weight, returns its share of the sum of itself and all later weights: its share of the
/// time that the earlier ones leave.
#[must_use]
pub fn shares_ahead(weights: &[f64]) -> Vec<f64> {
    let mut ahead = 0.0;
    let share = |&weight: &f64| {
        ahead += weight;
        if ahead > 0.0 { weight / ahead } else { 0.0 }
    };
    let mut shares: Vec<f64> = weights.iter().rev().map(share).collect();
    shares.reverse();
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_fabric::{Collective, OperatorClass, SyncModes};

    #[test]
    fn shares_are_of_the_remaining_weight() {
        assert_eq!(shares_ahead(&[1.0, 1.0, 2.0]), [0.25, 1.0 / 3.0, 1.0]);
        assert_eq!(shares_ahead(&[1e300, 1e-300, 0.0]), [1.0, 1.0, 0.0]);
    }

    #[test]
    fn points_are_unique_and_heaviest_first() {
        let barrier = Query {
            collective: Collective::Barrier,
            sync: SyncModes::STRICT,
            pes: 2,
            bytes: 0,
            operator: OperatorClass::Commutative,
            symmetric: true,
        };
        let odd = Query { sync: SyncModes::MINE, bytes: 8, ..barrier };
        let reduce = Query { collective: Collective::Reduce, bytes: 64, ..barrier };
        let workload = Workload::exactly([(odd, 1.0), (reduce, 7.0), (barrier, 5.0)]);
        assert_eq!(workload.points(), [(reduce, 7.0), (barrier, 6.0)]);
        assert!(!workload.refines());
    }
}
