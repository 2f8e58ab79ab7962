//! The error of a group that cannot be formed.

use super::space::NoRegion;
use crate::segment::no_memory::NoMemory;

/// Why there is no other group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoGroup {
    /// The system has refused memory to this PE.
    #[error(transparent)]
    Memory(#[from] Box<NoMemory>),
    /// Another member could not get memory for it, or this one takes the group to have another size.
    #[error("another of its members could not get memory for it")]
    Member,
    /// All teams would take too much memory.
    #[error("the teams of a job take at most {most} bytes")]
    Full {
        /// That number.
        most: usize,
    },
    /// There are too many at once.
    #[error("a job has at most {most} teams at once")]
    TooMany {
        /// That number.
        most: usize,
    },
    /// The job has failed meanwhile.
    #[error("the job has failed")]
    Failed,
}

impl From<NoRegion> for NoGroup {
    fn from(error: NoRegion) -> Self {
        match error {
            NoRegion::TooMany { most } => Self::TooMany { most },
            NoRegion::Exhausted { .. } => Self::Member,
        }
    }
}
