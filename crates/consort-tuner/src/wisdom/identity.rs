//! The identity of wisdom: the machine, the arrival, and the revisions of the algorithms.

use std::{error::Error, fmt};

use super::revisions::Revisions;
use crate::{Arrival, Catalog};

/// The identity of wisdom. Wisdom is used on the same machine with the same arrival, as far as the
/// algorithms that it names have not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The machine, as the fabric describes it: processor, topology, placement.
    pub machine: String,
    /// The version of the library that produced the wisdom.
    pub library: String,
    /// The revisions of the algorithms.
    pub revisions: Revisions,
    /// How the PEs arrived at the calls that were measured.
    pub arrival: Arrival,
}

impl Identity {
    /// Creates the identity of wisdom that is measured on `machine` with this version and the
    /// algorithms of `catalog`.
    #[must_use]
    pub fn new(machine: &str, catalog: &dyn Catalog) -> Self {
        Self {
            machine: machine.to_owned(),
            library: env!("CARGO_PKG_VERSION").to_owned(),
            revisions: catalog.revisions(),
            arrival: Arrival::Together,
        }
    }

    /// Returns the same identity with another arrival.
    #[must_use]
    pub fn with(self, arrival: Arrival) -> Self {
        Self { arrival, ..self }
    }

    /// Checks that wisdom of `other` may be used under this identity, as far as its algorithms have
    /// not changed.
    ///
    /// # Errors
    /// The first difference, of machine or arrival, in this order.
    pub fn admit(&self, other: &Self) -> Result<(), IdentityMismatch> {
        let (theirs, ours) = (other.clone(), self.clone());
        if theirs.machine != ours.machine {
            return Err(IdentityMismatch::OtherMachine {
                theirs: theirs.machine,
                ours: ours.machine,
            });
        }
        if theirs.arrival != ours.arrival {
            return Err(IdentityMismatch::OtherArrival {
                theirs: theirs.arrival,
                ours: ours.arrival,
            });
        }
        Ok(())
    }
}

/// The reason why wisdom cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityMismatch {
    /// It was measured on another machine.
    OtherMachine {
        /// The machine of the wisdom.
        theirs: String,
        /// This machine.
        ours: String,
    },
    /// All algorithms that it names have changed or no longer exist.
    OtherAlgorithms {
        /// The version that produced it.
        theirs: String,
    },
    /// It was measured with another arrival of the PEs.
    OtherArrival {
        /// The arrival of the wisdom.
        theirs: Arrival,
        /// The arrival of this launch.
        ours: Arrival,
    },
}

impl fmt::Display for IdentityMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherMachine { theirs, ours } => write!(
                f,
                "made on machine `{theirs}`, but this is `{ours}`: tune into another file \
                 (`consort tune --wisdom FILE`, or set CONSORT_WISDOM)"
            ),
            Self::OtherAlgorithms { theirs } => write!(
                f,
                "out of date, because all its algorithms have changed since version {theirs}: run \
                 `consort tune` again"
            ),
            Self::OtherArrival { theirs, ours } => {
                write!(f, "tuned for {theirs} arrival, but this job uses {ours}: name another file")
            }
        }
    }
}

impl Error for IdentityMismatch {}

/// Returns the FNV-1a hash of the lines, which is equal on every machine and in every version.
pub(super) fn fingerprint<'a>(lines: impl IntoIterator<Item = &'a str>) -> u64 {
    let bytes = lines.into_iter().flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
