//! Revisions of algorithms: wisdom is used as far as they have not changed.

use std::collections::{BTreeMap, BTreeSet};

use consort_fabric::{Candidate, Collective};

/// Revisions of algorithms, each of which is raised when what the algorithm sends changes. Their
/// names are a collective and an algorithm, as in `reduce knomial`, or an algorithm alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revisions(BTreeMap<String, u32>);

impl Revisions {
    /// Those of these algorithms.
    pub fn of<N: AsRef<str>>(all: impl IntoIterator<Item = (Collective, N, u32)>) -> Self {
        let mut revisions = BTreeMap::new();
        for (collective, algorithm, revision) in all {
            let algorithm = algorithm.as_ref();
            revisions.insert(format!("{collective} {algorithm}"), revision);
            *revisions.entry(algorithm.to_owned()).or_default() += revision;
        }
        Self(revisions)
    }

    /// The same with one more algorithm, which is no part of others.
    #[must_use]
    pub fn and(mut self, collective: Collective, algorithm: &str, revision: u32) -> Self {
        self.0.insert(format!("{collective} {algorithm}"), revision);
        self
    }

    /// The same with those of `other` of algorithms that are not known here.
    pub(super) fn and_unknown_of(mut self, other: &Self) -> Self {
        for (name, revision) in &other.0 {
            self.0.entry(name.clone()).or_insert(*revision);
        }
        self
    }

    /// Revisions by name, as a file has them.
    pub(super) fn named(by_name: BTreeMap<String, u32>) -> Self {
        Self(by_name)
    }

    /// The names of a candidate's algorithms: its own by its collective, as in `reduce knomial`,
    /// and those of its parts alone. The revision of such a name is the sum over all collectives,
    /// since a candidate does not say of which one its part is.
    pub(super) fn names(collective: Collective, candidate: &Candidate) -> Vec<String> {
        let own = format!("{collective} {}", candidate.algorithm);
        let parts = candidate.parts.iter().map(|part| part.algorithm.clone());
        std::iter::once(own).chain(parts).collect()
    }

    /// Those of the algorithms with these names.
    pub(super) fn only(&self, names: &BTreeSet<String>) -> BTreeMap<String, u32> {
        let known = |name: &String| Some((name.clone(), *self.0.get(name)?));
        names.iter().filter_map(known).collect()
    }

    /// Whether a candidate has the same algorithms in both.
    pub(super) fn agree(&self, other: &Self, collective: Collective, one: &Candidate) -> bool {
        Self::names(collective, one).iter().all(|name| {
            let (ours, theirs) = (self.0.get(name), other.0.get(name));
            ours.is_some() && ours == theirs
        })
    }
}
