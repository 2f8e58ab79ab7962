//! The model's choice: candidates ranked by their estimates.

use consort_fabric::{Candidate, Query};

use crate::{Catalog, Confidence, Entry, Rigour, RunnerUp, times::rounded_ns};

/// The candidates for `query` for which `able` holds, with their estimates, the most promising
/// first. Candidates with equal estimates are ordered by their names.
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

/// The model's choice among the candidates for which `able` holds, as an entry; `None` if there is
/// none.
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
        busy: None,
    })
}
