//! The model's choice: candidates ranked by their estimates, and equivalent candidates.

use consort_fabric::{Candidate, Query};

use crate::{
    Catalog, Confidence, Entry, Rigour, RunnerUp, best_parts::best_of_each, times::rounded_ns,
};

/// Returns the candidates for `query` that satisfy `able`, with their estimates, the most promising
/// first. They include the combination of the best of each part. Candidates with equal estimates
/// are ordered by name.
pub fn ranked(
    catalog: &dyn Catalog,
    query: &Query,
    able: impl Fn(&Candidate) -> bool,
) -> Vec<(Candidate, f64)> {
    let estimate = |candidate: Candidate| {
        let estimate_ns = rounded_ns(catalog.estimate_ns(query, &candidate));
        (candidate, estimate_ns)
    };
    let sort = |ranked: &mut Vec<(Candidate, f64)>| {
        ranked.sort_unstable_by(|(a, a_ns), (b, b_ns)| a_ns.total_cmp(b_ns).then_with(|| a.cmp(b)));
    };
    let candidates = catalog.candidates(query).into_iter();
    let mut ranked: Vec<_> = candidates.filter(|one| able(one)).map(estimate).collect();
    sort(&mut ranked);
    let best = best_of_each(&ranked.iter().map(|(candidate, _)| candidate).collect::<Vec<_>>());
    if let Some(best) = best.filter(able) {
        ranked.push(estimate(best));
        sort(&mut ranked);
    }
    ranked
}

/// Returns the model's choice among the candidates that satisfy `able`, as an entry; `None` if
/// there are none.
pub(crate) fn estimated(
    catalog: &dyn Catalog,
    query: &Query,
    able: impl Fn(&Candidate) -> bool,
) -> Option<Entry> {
    let mut ranked = ranked(catalog, query, able).into_iter();
    let (choice, median_ns) = ranked.next()?;
    // The same candidate under another name is not a runner-up.
    let second = ranked.find(|(candidate, _)| !same(catalog, query, &choice, candidate));
    let runner_up = second.map(|(candidate, median_ns)| RunnerUp { candidate, median_ns });
    Some(Entry {
        query: *query,
        choice,
        median_ns,
        ci95_ns: None,
        runner_up,
        contenders: Vec::new(),
        class: None,
        confidence: Confidence::Model,
        rigour: Rigour::Estimate,
        undisturbed: 1.0,
        busy: None,
    })
}

/// Returns the distinct candidates at `query`, in order. Of several candidates that are the same
/// algorithm, it returns the first.
pub fn distinct<'c>(
    catalog: &'c dyn Catalog,
    query: &'c Query,
    candidates: impl IntoIterator<Item = Candidate> + 'c,
) -> impl Iterator<Item = Candidate> + 'c {
    let mut seen: Vec<u64> = Vec::new();
    let is_new = move |candidate: &Candidate| {
        let Some(print) = catalog.fingerprint(query, candidate) else { return true };
        let is_new = !seen.contains(&print);
        seen.push(print);
        is_new
    };
    candidates.into_iter().filter(is_new)
}

/// Returns whether two candidates are the same algorithm at `query`.
pub fn same(catalog: &dyn Catalog, query: &Query, one: &Candidate, other: &Candidate) -> bool {
    let print = |candidate| catalog.fingerprint(query, candidate);
    one == other || print(one).is_some_and(|own| print(other) == Some(own))
}
