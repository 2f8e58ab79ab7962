//! The identity of wisdom: the machine, the arrival, and the revisions of the algorithms.

use std::collections::{BTreeMap, BTreeSet};

use consort_fabric::{Candidate, Collective, OperatorClass, Query, SyncModes};

use crate::{Arrival, Catalog, query::canonical};

/// The identity of wisdom. It is used on the same machine with the same arrival, as far as the
/// algorithms that it names have not changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The machine, as the fabric describes it: processor, topology, placement.
    pub machine: String,
    /// The version of the library that it was made with.
    pub library: String,
    /// The revisions of the algorithms.
    pub revisions: Revisions,
    /// How the PEs arrived at the calls that were measured.
    pub arrival: Arrival,
}

/// Revisions of algorithms, each of which is raised when what the algorithm sends changes. Their
/// names are those of [`Revisions::names`].
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

impl Identity {
    /// The identity of wisdom measured on `machine` with this version and the algorithms of
    /// `catalog`.
    #[must_use]
    pub fn new<C: Catalog + ?Sized>(machine: &str, catalog: &C) -> Self {
        Self {
            machine: machine.to_owned(),
            library: env!("CARGO_PKG_VERSION").to_owned(),
            revisions: catalog.revisions(),
            arrival: Arrival::Together,
        }
    }

    /// The same identity with another arrival.
    #[must_use]
    pub fn with(self, arrival: Arrival) -> Self {
        Self { arrival, ..self }
    }

    /// Checks that wisdom of `other` may be used under this identity, as far as its algorithms have
    /// not changed.
    ///
    /// # Errors
    /// The first difference: of machine or arrival, in this order.
    pub fn admit(&self, other: &Self) -> Result<(), Misfit> {
        let (theirs, ours) = (other.clone(), self.clone());
        if theirs.machine != ours.machine {
            return Err(Misfit::OtherMachine { theirs: theirs.machine, ours: ours.machine });
        }
        if theirs.arrival != ours.arrival {
            return Err(Misfit::OtherArrival { theirs: theirs.arrival, ours: ours.arrival });
        }
        Ok(())
    }
}

/// The reason why wisdom cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It was made on another machine.
    #[error(
        "made on machine `{theirs}`, and this is `{ours}`: tune into a file of its own \
         (`consort tune --wisdom FILE`, or set CONSORT_WISDOM)"
    )]
    OtherMachine {
        /// The machine that made it.
        theirs: String,
        /// This machine.
        ours: String,
    },
    /// All algorithms that it names have changed or are no more.
    #[error(
        "stale, all its algorithms have changed since version {theirs}: run `consort tune` again"
    )]
    OtherAlgorithms {
        /// The version that made it.
        theirs: String,
    },
    /// It was made of calls with another arrival of the PEs.
    #[error("made for PEs that come {theirs}, and these come {ours}: name another file")]
    OtherArrival {
        /// The arrival of the wisdom.
        theirs: Arrival,
        /// The arrival of this launch.
        ours: Arrival,
    },
}

/// The algorithms of `catalog` for a fixed set of queries, each of revision 1.
pub(crate) fn offered<C: Catalog + ?Sized>(catalog: &C) -> Revisions {
    let mut offered = BTreeSet::new();
    for collective in Collective::EVERY {
        for sync in [SyncModes::STRICT, SyncModes::MINE, SyncModes::LOOSE] {
            for (pes, bytes) in [(2, 8), (2, 1 << 20), (16, 8), (16, 4096), (16, 1 << 20)] {
                for (operator, symmetric) in
                    [(OperatorClass::Commutative, true), (OperatorClass::Ordered, false)]
                {
                    let query = Query { collective, sync, pes, bytes, operator, symmetric };
                    let candidates = catalog.candidates(&canonical(&query));
                    offered.extend(candidates.into_iter().map(|one| (collective, one.algorithm)));
                }
            }
        }
    }
    Revisions::of(offered.into_iter().map(|(collective, name)| (collective, name, 1)))
}

/// FNV-1a of the lines: equal on every machine and in every version.
pub(super) fn fingerprint<'a>(lines: impl IntoIterator<Item = &'a str>) -> u64 {
    let bytes = lines.into_iter().flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
