//! The model's answer: candidates in the order of their estimates.

use std::ops::RangeInclusive;

use consort_fabric::{Candidate, Query};

use crate::{Catalog, Confidence, Entry, Rigour, RunnerUp};

/// The times that wisdom keeps, in nanoseconds: from the resolution kept to eleven days. What is
/// longer, or not a number, counts as the longest.
pub(crate) const TIMES_NS: RangeInclusive<f64> = 0.1..=1e15;

/// A time as wisdom keeps it: to a tenth of a nanosecond, within [`TIMES_NS`].
pub(crate) fn rounded_ns(time_ns: f64) -> f64 {
    if time_ns.is_nan() {
        return *TIMES_NS.end();
    }
    ((time_ns * 10.0).round() / 10.0).clamp(*TIMES_NS.start(), *TIMES_NS.end())
}

/// Those candidates for `query` that are `able`, with their estimates, the most promising first;
/// those that the model cannot tell apart in the order of their names.
pub(crate) fn ranked<C: Catalog + ?Sized>(
    catalog: &C,
    query: &Query,
    able: impl Fn(&Candidate) -> bool,
) -> Vec<(Candidate, f64)> {
    let mut ranked: Vec<_> = catalog
        .candidates(query)
        .into_iter()
        .filter(|candidate| able(candidate))
        .map(|candidate| {
            let estimate_ns = rounded_ns(catalog.estimate_ns(query, &candidate));
            (candidate, estimate_ns)
        })
        .collect();
    ranked.sort_by(|(a, a_ns), (b, b_ns)| a_ns.total_cmp(b_ns).then_with(|| a.cmp(b)));
    ranked
}

/// The model's choice among those that are `able`, as an entry; `None` if none is.
pub(crate) fn estimated<C: Catalog + ?Sized>(
    catalog: &C,
    query: &Query,
    able: impl Fn(&Candidate) -> bool,
) -> Option<Entry> {
    let mut ranked = ranked(catalog, query, able).into_iter();
    let (choice, median_ns) = ranked.next()?;
    let runner_up = ranked.next().map(|(candidate, median_ns)| RunnerUp { candidate, median_ns });
    Some(Entry {
        query: *query,
        choice,
        median_ns,
        ci95_ns: None,
        runner_up,
        class: None,
        confidence: Confidence::Model,
        rigour: Rigour::Estimate,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_into_the_range_that_wisdom_keeps() {
        assert_eq!(rounded_ns(12.34), 12.3);
        assert_eq!(rounded_ns(0.0), 0.1);
        assert_eq!(rounded_ns(f64::NAN), 1e15);
        assert_eq!(rounded_ns(f64::INFINITY), 1e15);
        assert_eq!(rounded_ns(rounded_ns(7.77)), 7.8);
    }
}
