//! The error of a group that cannot be formed.

use std::fmt;

use super::region_allocator::RegionError;
use crate::segment::memory_error::MemoryError;

/// The reason why a group cannot be formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupError {
    /// The system has refused memory to this PE.
    Memory(Box<MemoryError>),
    /// Another member could not get memory for the group, or this member assumes another group
    /// size.
    PeerExhausted,
    /// All teams would take too much memory.
    Full {
        /// The maximum number of bytes.
        most: usize,
    },
    /// There are too many teams at once.
    TooMany {
        /// The maximum number of teams.
        most: usize,
    },
    /// The job failed in the meantime.
    Failed,
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => fmt::Display::fmt(error, f),
            Self::PeerExhausted => f.write_str(
                "another member of the team could not get memory for it: that PE's error says why",
            ),
            Self::Full { most } => write!(
                f,
                "the teams of a job take at most {most} bytes: free teams that are no longer used"
            ),
            Self::TooMany { most } => write!(
                f,
                "a job has at most {most} teams at once: free teams that are no longer used"
            ),
            Self::Failed => f.write_str("the job has failed"),
        }
    }
}

impl std::error::Error for GroupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Memory(error) => error.source(),
            _ => None,
        }
    }
}

impl From<Box<MemoryError>> for GroupError {
    fn from(error: Box<MemoryError>) -> Self {
        Self::Memory(error)
    }
}

impl From<RegionError> for GroupError {
    fn from(error: RegionError) -> Self {
        match error {
            RegionError::TooMany { most } => Self::TooMany { most },
            RegionError::Exhausted { .. } => Self::PeerExhausted,
        }
    }
}
