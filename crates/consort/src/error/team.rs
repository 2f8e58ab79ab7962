//! Teams that cannot be created or freed.

use std::fmt;

use consort_fabric::Rank;

/// The reason why a team cannot be created or freed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TeamError {
    /// A member is not in the parent.
    Outside {
        /// The rank that was given, or computed from a stride.
        rank: i64,
        /// The parent's size.
        pes: usize,
    },
    /// A member is listed twice.
    Twice {
        /// The member's rank.
        rank: Rank,
    },
    /// The PEs do not fill the rows.
    Rows {
        /// The number of rows requested.
        rows: usize,
        /// The parent's size.
        pes: usize,
    },
    /// There is no memory for another team. In a split, the teams of some colours may fail and
    /// others succeed.
    Memory {
        /// The size that the team would have.
        pes: usize,
        /// The system call and the limit, or the reason of another PE.
        reason: String,
    },
    /// The team of all PEs cannot be freed.
    World,
}

impl fmt::Display for TeamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside { rank, pes } => write!(
                f,
                "PE {rank} cannot be in the team: its parent's {pes} PEs have ranks 0 \
                 to {}",
                pes - 1
            ),
            Self::Twice { rank } => {
                write!(f, "PE {rank} is in the list twice: list each member once")
            }
            Self::Rows { rows, pes } => write!(
                f,
                "{pes} PEs do not fill {rows} rows of equal length: give a divisor of \
                 {pes}"
            ),
            Self::Memory { pes, reason } => write!(
                f,
                "there is no memory for another team of {pes} PEs: {reason}, or free \
                 teams that are no longer used"
            ),
            Self::World => {
                f.write_str("the team of all PEs cannot be freed: it lasts as long as the job")
            }
        }
    }
}

impl std::error::Error for TeamError {}
