//! The sizes at which the choice changes: a search measures there next.

use consort_fabric::Query;

use crate::{Entry, Wisdom, query::row_of};

/// Returns the sizes to measure between neighbouring entries of a row that satisfy `accepts` and
/// whose choices differ, as `is_change` decides. The sizes with the largest margin come first.
/// Neighbours that are both ties have no crossover, because either choice serves.
pub(super) fn crossovers(
    wisdom: &Wisdom,
    accepts: impl Fn(&Entry) -> bool,
    is_change: impl Fn(&Entry, &Entry) -> bool,
) -> Vec<Query> {
    let mut entries: Vec<&Entry> = wisdom.entries().filter(|entry| accepts(entry)).collect();
    entries.sort_by_key(|entry| (row_of(&entry.query), entry.query.bytes));
    let is_tie = |entry: &Entry| entry.confidence.is_undecided();
    let margin = |entry: &Entry| match is_tie(entry) {
        true => 0.0,
        false => entry.margin().unwrap_or(f64::INFINITY),
    };
    let mut crossovers: Vec<(f64, Query)> = entries
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .filter(|(low, high)| row_of(&low.query) == row_of(&high.query))
        .filter(|(low, high)| !(is_tie(low) && is_tie(high)) && is_change(low, high))
        .filter_map(|(low, high)| {
            let bytes = power_between(low.query.bytes, high.query.bytes)?;
            Some((margin(low).max(margin(high)), Query { bytes, ..low.query }))
        })
        .collect();
    crossovers.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    crossovers.into_iter().map(|(_, query)| query).collect()
}

/// Returns the power of two in the middle between two sizes, if one lies strictly between them.
fn power_between(low: u64, high: u64) -> Option<u64> {
    let exponent = low.checked_ilog2()?.midpoint(high.checked_ilog2()?);
    Some(1 << exponent).filter(|&power| low < power && power < high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_lie_strictly_between() {
        assert_eq!(power_between(8, 64), Some(16));
        assert_eq!(power_between(16, 64), Some(32));
        assert_eq!(power_between(32, 64), None);
        assert_eq!(power_between(48, 96), None);
        assert_eq!(power_between(0, 64), None);
        assert_eq!(power_between(33, 1000), Some(128));
    }
}
