//! Revisions of algorithms: only entries of wisdom whose algorithms have the same revision are
//! used.

use std::collections::{BTreeMap, BTreeSet};

use consort_fabric::{Candidate, Collective};

/// Revisions of algorithms. A revision is raised when the messages of its algorithm change. The
/// names are a collective and an algorithm, as in `reduce knomial`, or an algorithm alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revisions(BTreeMap<String, u32>);

impl Revisions {
    /// Creates the revisions of these algorithms.
    pub fn of<N: AsRef<str>>(all: impl IntoIterator<Item = (Collective, N, u32)>) -> Self {
        all.into_iter().fold(Self::default(), |revisions, (collective, algorithm, revision)| {
            let algorithm = algorithm.as_ref();
            revisions.and_to_sum(algorithm, revision).and(collective, algorithm, revision)
        })
    }

    /// Adds a revision to the sum for an algorithm's name alone.
    fn and_to_sum(mut self, algorithm: &str, revision: u32) -> Self {
        *self.0.entry(algorithm.to_owned()).or_default() += revision;
        self
    }

    /// Adds one more algorithm, which is not a part of others.
    #[must_use]
    pub fn and(mut self, collective: Collective, algorithm: &str, revision: u32) -> Self {
        self.0.insert(format!("{collective} {algorithm}"), revision);
        self
    }

    /// Adds the revisions in `other` of algorithms that are unknown here.
    pub(super) fn and_unknown_of(mut self, other: &Self) -> Self {
        for (name, revision) in &other.0 {
            self.0.entry(name.clone()).or_insert(*revision);
        }
        self
    }

    /// Creates revisions by name, as in a file.
    pub(super) fn named(by_name: BTreeMap<String, u32>) -> Self {
        Self(by_name)
    }

    /// Returns the names of a candidate's algorithms: its own with its collective, as in `reduce
    /// knomial`, and those of its parts alone. The revision of such a name is the sum over all
    /// collectives, because a candidate does not contain the collectives of its parts.
    pub(super) fn names(collective: Collective, candidate: &Candidate) -> Vec<String> {
        let own = format!("{collective} {}", candidate.algorithm);
        let mut names = vec![own];
        let mut parts: Vec<&Candidate> = candidate.parts.iter().collect();
        while let Some(part) = parts.pop() {
            names.push(part.algorithm.clone());
            parts.extend(&part.parts);
        }
        names
    }

    /// Returns the revisions of the algorithms with these names.
    pub(super) fn only(&self, names: &BTreeSet<String>) -> BTreeMap<String, u32> {
        let known = |name: &String| Some((name.clone(), *self.0.get(name)?));
        names.iter().filter_map(known).collect()
    }

    /// Returns whether the algorithms of a candidate have the same revisions in both.
    pub(super) fn agree(&self, other: &Self, collective: Collective, one: &Candidate) -> bool {
        Self::names(collective, one).iter().all(|name| {
            let (ours, theirs) = (self.0.get(name), other.0.get(name));
            ours.is_some() && ours == theirs
        })
    }
}
