//! Calls that cannot be made.

use std::fmt;

use consort_collectives::PlanError;
use consort_fabric::{Collective, Rank};

use super::TeamError;
use crate::{displacements::DisplacementsError, weights::WeightsError};

/// A call that cannot be made: an argument is wrong, or something that the call needs no longer
/// exists. The call has moved no data, and the job goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// The root is not in the team.
    RootOutOfRange {
        /// The root that was given.
        root: Rank,
        /// The team's size.
        pes: usize,
    },
    /// The rank is not in the team.
    RankOutOfRange {
        /// The rank that was given.
        rank: Rank,
        /// The team's size.
        pes: usize,
    },
    /// A message from a PE to itself.
    OwnMessage {
        /// The PE's rank in the team.
        rank: Rank,
    },
    /// The source and the target differ in length.
    Lengths {
        /// Elements of the source.
        source_len: usize,
        /// Elements of the target.
        target_len: usize,
    },
    /// The length of the data differs from the planned length.
    PlannedLength {
        /// The number of elements given.
        given: usize,
        /// The number of elements planned, as the call's source or as its target.
        planned: usize,
    },
    /// The buffers do not have the lengths of the blocks that the collective moves.
    Blocks {
        /// The collective.
        collective: Collective,
        /// The team's size.
        pes: usize,
        /// The number of blocks that this PE contributes.
        contributed: usize,
        /// The number of blocks that it receives.
        received: usize,
        /// Elements of the source.
        source_len: usize,
        /// Elements of the target.
        target_len: usize,
    },
    /// A length was given for the blocks of an all-to-all whose counts already give all lengths.
    LengthWithCounts {
        /// The length that was stated.
        len: usize,
    },
    /// Displacements that the vector variant cannot use.
    Displacements(DisplacementsError),
    /// A call from symmetric memory into the same memory.
    InPlace,
    /// A broadcast in symmetric memory was given two allocations, but works in one.
    TwoMemories,
    /// Symmetric memory of another job, or a counter there.
    OtherJob,
    /// The counter or the flag of a put or a get is in memory of a team to which the PE does not
    /// belong.
    WordElsewhere {
        /// The PE's rank in the world.
        rank: Rank,
    },
    /// Elements outside a symmetric allocation.
    OutOfBounds {
        /// The first element of the access.
        first: usize,
        /// One past the last element of the access.
        end: usize,
        /// The number of elements on each PE.
        len: usize,
    },
    /// A borrowed slice in a call that may return before the data has moved.
    BorrowedSlice(consort_fabric::SyncModes),
    /// A team cannot be created or freed.
    Team(TeamError),
    /// A call of a team that has been freed, or of its symmetric memory.
    Freed,
    /// A call by a handle of a PE that no thread runs, or with its symmetric memory: its program or
    /// its region has ended, or its thread has left the job.
    Ended,
    /// The value of this type that the PE keeps is in use already.
    InUse(&'static str),
    /// The result of a nonblocking call has already been taken.
    Taken,
    /// All numbers that distinguish kinds of calls are in use. If the other PEs have planned the
    /// call before, only this PE returns the error.
    TooManyCallKinds {
        /// The limit on the number of kinds.
        most: usize,
    },
    /// An operator called the library.
    Reentrant,
    /// A call that needs PEs with shared memory, in a job whose PEs do not share it.
    NeedsSharedMemory(&'static str),
    /// Weights by which no work can be divided.
    Weights(WeightsError),
    /// A forced candidate is unknown or cannot serve the call.
    Plan(PlanError),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RootOutOfRange { root, pes } => write!(
                f,
                "root {root} is not in the team: its {pes} PEs have ranks 0 to {}",
                pes - 1
            ),
            Self::RankOutOfRange { rank, pes } => {
                write!(f, "PE {rank} is not in the team: its {pes} PEs have ranks 0 to {}", pes - 1)
            }
            Self::OwnMessage { rank } => write!(
                f,
                "PE {rank} sends to itself, or receives from itself: copy the data, or \
                 give this rank for both PEs of `send_receive`"
            ),
            Self::Lengths { source_len, target_len } => write!(
                f,
                "the source has {source_len} elements and the target {target_len}: \
                 give equal lengths"
            ),
            Self::PlannedLength { given, planned } => {
                write!(f, "{given} elements are given to a call that was planned for {planned}")
            }
            Self::Blocks { collective, pes, contributed, received, source_len, target_len } => {
                write!(
                    f,
                    "{collective} among {pes} PEs takes {} here and gives {}, all of one \
                     length: the source has {source_len} elements and the target \
                     {target_len}; for blocks of other lengths, use `with_counts` or `uneven`",
                    blocks(*contributed),
                    blocks(*received)
                )
            }
            Self::LengthWithCounts { len } => write!(
                f,
                "a length of {len} is stated for an all-to-all whose counts have all lengths: give \
                 0 to `plan`, and leave out `with_len`"
            ),
            Self::Displacements(error) => fmt::Display::fmt(error, f),
            Self::InPlace => {
                f.write_str("source and target overlap in symmetric memory: use two allocations")
            }
            Self::TwoMemories => f.write_str(
                "a broadcast in symmetric memory works in place: pass the same allocation as \
                 source and target",
            ),
            Self::OtherJob => f.write_str(
                "the symmetric memory or the counter is of another job: allocate it in a team of \
                 this job",
            ),
            Self::WordElsewhere { rank } => write!(
                f,
                "PE {rank} of the world is not in the team of the counter or flag: allocate it in \
                 a team with all PEs of the data"
            ),
            Self::OutOfBounds { first, end, len } => {
                write!(f, "elements {first}..{end} are not in memory of {len} elements a PE")
            }
            Self::BorrowedSlice(modes) => write!(
                f,
                "a borrowed slice cannot be left behind in a {modes} call, which may \
                 return before its data has moved: use symmetric memory, or an exit \
                 mode of mine or all"
            ),
            Self::Team(error) => fmt::Display::fmt(error, f),
            Self::Freed => f.write_str(
                "the team has been freed: make its calls before that, or form another team",
            ),
            Self::Ended => f.write_str(
                "the PE is not running: make its calls inside its program or its region, before it \
                 leaves the job",
            ),
            Self::InUse(of) => {
                write!(f, "the PE's kept value of type {of} is in use: drop it before `keep`")
            }
            Self::Taken => f.write_str(
                "the result of this nonblocking call has been taken: poll it until it \
                 is ready, once",
            ),
            Self::TooManyCallKinds { most } => write!(
                f,
                "no number is left for another kind of call: plans hold {most}; drop \
                 planned calls, or make calls of fewer lengths"
            ),
            Self::Reentrant => {
                f.write_str("an operator may not call the library: it runs inside a call")
            }
            Self::NeedsSharedMemory(what) => write!(f, "{what}: use threads, or `consort run`"),
            Self::Weights(error) => fmt::Display::fmt(error, f),
            Self::Plan(error) => fmt::Display::fmt(error, f),
        }
    }
}

fn blocks(count: usize) -> String {
    match count {
        0 => "nothing".to_owned(),
        1 => "a block".to_owned(),
        _ => format!("{count} blocks"),
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Displacements(error) => error.source(),
            Self::Team(error) => error.source(),
            Self::Weights(error) => error.source(),
            Self::Plan(error) => error.source(),
            _ => None,
        }
    }
}

impl From<DisplacementsError> for CallError {
    fn from(error: DisplacementsError) -> Self {
        Self::Displacements(error)
    }
}

impl From<TeamError> for CallError {
    fn from(error: TeamError) -> Self {
        Self::Team(error)
    }
}

impl From<PlanError> for CallError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}
