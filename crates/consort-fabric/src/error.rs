//! What an operation of a fabric may report, and what a call says of itself.

use std::fmt;

use crate::{Collective, Rank, Sync};

/// The job has failed: a PE panicked or left, or calls did not match. What happened is kept once
/// for the whole job, by the fabric; an operation only says that it cannot complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned;

/// What must be the same in a call on every PE of a team, for comparing and for naming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The operation.
    pub collective: Collective,
    /// Its modes.
    pub sync: Sync,
    /// Bytes of a block; of pieces only those PEs know the length that have them.
    pub bytes: u64,
    /// The root, for an operation that has one.
    pub root: Option<Rank>,
    /// The element type's name.
    pub datatype: &'static str,
    /// The operator's name, for an operation that combines.
    pub operator: Option<&'static str>,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.collective)?;
        if self.collective == Collective::Barrier {
            return write!(f, "()");
        }
        if self.collective.is_varied() {
            write!(f, "(pieces of {}", self.datatype)?;
        } else {
            write!(f, "({} bytes of {}", self.bytes, self.datatype)?;
        }
        if let Some(operator) = self.operator {
            write!(f, ", {operator}")?;
        }
        if let Some(root) = self.root {
            write!(f, ", root {root}")?;
        }
        write!(f, ", {})", self.sync)
    }
}
