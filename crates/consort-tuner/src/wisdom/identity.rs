//! The identity of wisdom: the machine, the version of the library, the set of candidates, and the
//! arrival.

use consort_fabric::{Collective, OperatorClass, Query, SyncModes};

use crate::{Arrival, Catalog, query::canonical};

/// The identity of wisdom, which is used only where all of it is equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The machine, as the fabric describes it: processor, topology, placement.
    pub machine: String,
    /// The library's version.
    pub library: String,
    /// A hash of the candidates that the tuner had to choose from.
    pub candidates: u64,
    /// How the PEs arrived at the calls that were measured.
    pub arrival: Arrival,
}

impl Identity {
    /// The identity of wisdom measured on `machine` with this version and the candidates of
    /// `catalog`.
    #[must_use]
    pub fn new<C: Catalog + ?Sized>(machine: &str, catalog: &C) -> Self {
        Self {
            machine: machine.to_owned(),
            library: env!("CARGO_PKG_VERSION").to_owned(),
            candidates: candidate_set_hash(catalog),
            arrival: Arrival::Together,
        }
    }

    /// The same identity with another arrival.
    #[must_use]
    pub fn with(self, arrival: Arrival) -> Self {
        Self { arrival, ..self }
    }

    /// Checks that wisdom of `other` may be used under this identity.
    ///
    /// # Errors
    /// The first difference: of machine, version, candidates or arrival, in this order.
    pub fn admit(&self, other: &Self) -> Result<(), Misfit> {
        let (theirs, ours) = (other.clone(), self.clone());
        if theirs.machine != ours.machine {
            return Err(Misfit::OtherMachine { theirs: theirs.machine, ours: ours.machine });
        }
        if theirs.library != ours.library {
            return Err(Misfit::OtherLibrary { theirs: theirs.library, ours: ours.library });
        }
        if theirs.candidates != ours.candidates {
            return Err(Misfit::OtherCandidates);
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
    /// It was made by another version of the library.
    #[error("made by version {theirs}, and this is {ours}: run `consort tune` again")]
    OtherLibrary {
        /// The version that made it.
        theirs: String,
        /// This version.
        ours: String,
    },
    /// It was made from other algorithms or parameters.
    #[error("stale, made from other algorithms: run `consort tune` again")]
    OtherCandidates,
    /// It was made of calls with another arrival of the PEs.
    #[error("made for PEs that come {theirs}, and these come {ours}: name another file")]
    OtherArrival {
        /// The arrival of the wisdom.
        theirs: Arrival,
        /// The arrival of this launch.
        ours: Arrival,
    },
}

/// A hash of the candidates of `catalog` for a fixed set of queries. It changes when algorithms or
/// parameters are added or removed.
fn candidate_set_hash<C: Catalog + ?Sized>(catalog: &C) -> u64 {
    let mut offers = Vec::new();
    for collective in Collective::EVERY {
        for sync in [SyncModes::STRICT, SyncModes::MINE, SyncModes::LOOSE] {
            for (pes, bytes) in [(2, 8), (2, 1 << 20), (16, 8), (16, 4096), (16, 1 << 20)] {
                for (operator, symmetric) in
                    [(OperatorClass::Commutative, true), (OperatorClass::Ordered, false)]
                {
                    let query =
                        canonical(&Query { collective, sync, pes, bytes, operator, symmetric });
                    let mut names: Vec<_> =
                        catalog.candidates(&query).iter().map(ToString::to_string).collect();
                    names.sort_unstable();
                    offers.push(format!("{query:?}: {}", names.join(" ")));
                }
            }
        }
    }
    fingerprint(offers.iter().map(String::as_str))
}

/// FNV-1a of the lines: equal on every machine and in every version.
pub(super) fn fingerprint<'a>(lines: impl IntoIterator<Item = &'a str>) -> u64 {
    let bytes = lines.into_iter().flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
