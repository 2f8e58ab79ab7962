//! The errors of launches and calls. Each message says what to do instead.

use std::{fmt, io};

use consort_collectives::PlanError;
use consort_fabric::{Collective, Rank};
use consort_native::{Failure, HeapError, Job, JobError, JoinError, NoHeapSize, UnknownOrigin};

use crate::DisplacementsError;

/// The result of a call of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a launch or a call. `Debug` shows the message, as `Display` does, so that a `main`
/// that returns the error prints the message.
///
/// Run a program that has its own error type with [`Pes::try_run`](crate::Pes::try_run).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A PE panicked, or its program returned an error.
    PeFailed {
        /// The PE's rank in the world.
        rank: Rank,
        /// The panic or the error.
        reason: String,
    },
    /// The job has failed, and the reason cannot be read.
    JobFailed,
    /// PEs made different calls where all must make the same call, gave different lengths for a
    /// block that one sends to the other, or waited for each other in calls of different teams. Or
    /// a PE finished while others wait for it, or waits for a word that no PE is left to change, or
    /// for data that its algorithm never sends. The message names the PEs and their calls.
    Mismatched(Failure),
    /// The root is not in the team.
    RootOutOfRange {
        /// The root that was given.
        root: Rank,
        /// The team's size.
        pes: u32,
    },
    /// The rank is not in the team.
    RankOutOfRange {
        /// The rank that was given.
        rank: Rank,
        /// The team's size.
        pes: u32,
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
        pes: u32,
        /// The number of blocks that this PE contributes.
        contributed: usize,
        /// The number of blocks that it receives.
        received: usize,
        /// Elements of the source.
        source_len: usize,
        /// Elements of the target.
        target_len: usize,
    },
    /// Displacements that the vector variant cannot use.
    Displacements(DisplacementsError),
    /// A call from symmetric memory into the same memory.
    InPlace,
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
    /// A job without PEs.
    NoPes,
    /// More PEs than a job may have.
    TooManyPes {
        /// The number of PEs requested.
        asked: u32,
        /// The largest number allowed.
        most: u32,
    },
    /// `CONSORT_PES` is not a number.
    Pes(String),
    /// `CONSORT_PES_PER_PROCESS` is not a number.
    PesOfProcess(String),
    /// `CONSORT_HEAP_BYTES` is not a size, or exceeds the machine's memory.
    Heap(NoHeapSize),
    /// `CONSORT_PLACEMENT` names no placement.
    Placement(String),
    /// `CONSORT_SHARING` does not name the processes that share memory.
    Sharing(String),
    /// The process was started by an MPI that cannot be used.
    Mpi(String),
    /// The process cannot be one of the PEs that `consort run` started.
    Launch(JoinError),
    /// A pool whose PEs are processes.
    PoolOfProcesses,
    /// An operation that requires PEs with shared memory.
    FarPes(&'static str),
    /// Fewer or more inputs than PEs.
    Inputs {
        /// The number of inputs, or the number of PEs plus one if there are more.
        given: usize,
        /// The number of PEs.
        pes: usize,
    },
    /// Other PEs wait for PEs of a job that no thread runs. The message names them.
    Missing(Failure),
    /// A PE's wait has exceeded its limit. The message names the call, and the PEs that have not
    /// begun it.
    TimedOut(Failure),
    /// A thread cannot join, because others run all PEs of the job, or have dropped out of a
    /// barrier for good.
    Full {
        /// The number of PEs.
        pes: usize,
    },
    /// A thread cannot join as this PE, because another thread runs it.
    RankTaken {
        /// The PE.
        rank: Rank,
    },
    /// A thread cannot join a job twice.
    JoinedAlready {
        /// The PE that the thread runs.
        rank: Rank,
    },
    /// A thread cannot join while its thread-local values are being dropped: it is ending, and
    /// nothing would notice whether it leaves the job.
    ThreadEnds,
    /// This process is a forked child of one that runs the job, and takes no part in it. It may
    /// call `exec` or `exit`, or launch another job.
    Forked,
    /// A region inside a region of the same pool, for which the outer one would wait.
    Nested,
    /// A thread could not be started.
    Thread {
        /// The PE's rank.
        rank: Rank,
        /// The system's error, and its limit.
        reason: String,
    },
    /// Symmetric memory could not be allocated.
    Memory(HeapError),
    /// A team cannot be created or freed.
    Team(TeamError),
    /// A call of a team that has been freed, or of its symmetric memory.
    Freed,
    /// A PE's program has returned, but other threads still have handles on its symmetric memory.
    StillShared {
        /// The number of handles.
        handles: usize,
    },
    /// The result of a nonblocking call has already been taken.
    Taken,
    /// All numbers that distinguish kinds of calls are in use. One PE alone may return this error,
    /// if the others have planned the call before.
    Calls {
        /// The limit on the number of kinds.
        most: usize,
    },
    /// An operator called the library.
    Reentrant,
    /// A forced candidate is unknown or cannot serve the call.
    Plan(PlanError),
    /// The environment variable `CONSORT_SEGMENT` has an unknown value.
    Segment(UnknownOrigin),
    /// Wisdom cannot be used.
    Wisdom(String),
}

impl fmt::Display for Error {
    #[expect(clippy::too_many_lines, reason = "has a line for each error")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeFailed { rank, reason } => write!(f, "PE {rank} failed: {reason}"),
            Self::JobFailed => f.write_str("the job has failed for an unknown reason"),
            Self::Mismatched(failure) => fmt::Display::fmt(failure, f),
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
                     {target_len}",
                    blocks(*contributed),
                    blocks(*received)
                )
            }
            Self::Displacements(error) => fmt::Display::fmt(error, f),
            Self::InPlace => {
                f.write_str("source and target overlap in symmetric memory: use two allocations")
            }
            Self::OutOfBounds { first, end, len } => write!(
                f,
                "elements {first}..{end} are not in symmetric memory of {len} elements \
                 a PE"
            ),
            Self::BorrowedSlice(modes) => write!(
                f,
                "a borrowed slice cannot be left behind in a {modes} call, which may \
                 return before its data has moved: use symmetric memory, or an exit \
                 mode of mine or all"
            ),
            Self::NoPes => write!(
                f,
                "a job needs at least one PE: give Pes::threads, or a Barrier with \
                 members, a number from 1 to {}",
                crate::MOST_PES
            ),
            Self::TooManyPes { asked, most } => {
                write!(f, "{asked} PEs are too many: a job has at most {most}")
            }
            Self::Pes(text) => {
                write!(f, "CONSORT_PES is `{text}`: give a number of PEs, as in CONSORT_PES=4")
            }
            Self::PesOfProcess(text) => write!(
                f,
                "CONSORT_PES_PER_PROCESS is `{text}`: give a number of PEs, as in \
                 CONSORT_PES_PER_PROCESS=4"
            ),
            Self::Heap(error) => fmt::Display::fmt(error, f),
            Self::Placement(text) => {
                write!(f, "CONSORT_PLACEMENT is `{text}`: use blocks or in-turn")
            }
            Self::Sharing(text) => write!(f, "CONSORT_SHARING is `{text}`: use machine or process"),
            Self::Mpi(text) => fmt::Display::fmt(text, f),
            Self::Launch(error) => fmt::Display::fmt(error, f),
            Self::PoolOfProcesses => f.write_str(
                "a pool's PEs are threads of one process: use Pes::threads, or \
                 Pes::run",
            ),
            Self::FarPes(what) => write!(f, "{what}: use threads, or `consort run`"),
            Self::Inputs { given, pes } => {
                write!(f, "{given} inputs do not go to {pes} PEs: give one for each")
            }
            Self::Missing(failure) => fmt::Display::fmt(failure, f),
            Self::TimedOut(failure) => fmt::Display::fmt(failure, f),
            Self::Full { pes } => {
                write!(f, "the job is full: none of its {pes} PEs is free to join")
            }
            Self::RankTaken { rank } => {
                write!(f, "PE {rank} is taken: another thread runs it; join after that has left")
            }
            Self::JoinedAlready { rank } => write!(
                f,
                "this thread runs PE {rank} of the job already: leave before joining \
                 again"
            ),
            Self::ThreadEnds => f.write_str(
                "this thread ends: join a job before the thread's own values are \
                 dropped",
            ),
            Self::Forked => write!(f, "{}", Failure::Forked),
            Self::Nested => f.write_str(
                "a region of a pool inside a region of the same pool: use another \
                 pool, or a team",
            ),
            Self::Thread { rank, reason } => {
                write!(f, "cannot start a thread for PE {rank}: {reason}")
            }
            Self::Memory(error) => fmt::Display::fmt(error, f),
            Self::Team(error) => fmt::Display::fmt(error, f),
            Self::Freed => {
                f.write_str("the team has been freed: make its calls before, or make another team")
            }
            Self::StillShared { handles } => write!(
                f,
                "{handles} shared handles on symmetric memory were left when the PE \
                 ended: drop them before its program returns"
            ),
            Self::Taken => f.write_str(
                "the result of this nonblocking call has been taken: poll it until it \
                 is ready, once",
            ),
            Self::Calls { most } => write!(
                f,
                "no number is left for another kind of call: plans hold {most}; drop \
                 planned calls, or make calls of fewer lengths"
            ),
            Self::Reentrant => {
                f.write_str("an operator may not call the library: it runs inside a call")
            }
            Self::Plan(error) => fmt::Display::fmt(error, f),
            Self::Segment(error) => write!(f, "CONSORT_SEGMENT: {error}"),
            Self::Wisdom(text) => fmt::Display::fmt(text, f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Displacements(error) => error.source(),
            Self::Heap(error) => error.source(),
            Self::Launch(error) => error.source(),
            Self::Memory(error) => error.source(),
            Self::Team(error) => error.source(),
            Self::Plan(error) => error.source(),
            _ => None,
        }
    }
}

impl From<DisplacementsError> for Error {
    fn from(error: DisplacementsError) -> Self {
        Self::Displacements(error)
    }
}

impl From<NoHeapSize> for Error {
    fn from(error: NoHeapSize) -> Self {
        Self::Heap(error)
    }
}

impl From<JoinError> for Error {
    fn from(error: JoinError) -> Self {
        Self::Launch(error)
    }
}

impl From<HeapError> for Error {
    fn from(error: HeapError) -> Self {
        Self::Memory(error)
    }
}

impl From<TeamError> for Error {
    fn from(error: TeamError) -> Self {
        Self::Team(error)
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<JobError> for Error {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Memory(error) => error.into(),
            JobError::Member(JoinError::Lost { rank, reason }) => Self::PeFailed { rank, reason },
            JobError::Member(error) => error.into(),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn blocks(count: usize) -> String {
    match count {
        0 => "nothing".to_owned(),
        1 => "a block".to_owned(),
        _ => format!("{count} blocks"),
    }
}

impl Error {
    /// Returns the error that every PE of a failed job gets.
    #[cold]
    pub(crate) fn of_job(job: &Job) -> Self {
        match job.failure() {
            Some(Failure::Pe { rank, reason } | Failure::Ended { rank, reason, .. }) => {
                Self::PeFailed { rank, reason }
            }
            Some(Failure::Forked) => Self::Forked,
            Some(failure @ Failure::Missing { .. }) => Self::Missing(failure),
            Some(failure @ Failure::TimedOut { .. }) => Self::TimedOut(failure),
            Some(failure) => Self::Mismatched(failure),
            None => Self::JobFailed,
        }
    }
}

/// For programs whose error type is `io::Error`.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}

/// The reason why a team cannot be created or freed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TeamError {
    /// A member is not in the parent.
    Outside {
        /// The rank that was given, or computed from a stride.
        rank: i64,
        /// The parent's size.
        pes: u32,
    },
    /// A member is listed twice.
    Twice {
        /// The member's rank.
        rank: Rank,
    },
    /// The PEs do not fill the rows.
    Rows {
        /// The number of rows requested.
        rows: u32,
        /// The parent's size.
        pes: u32,
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
                "PE {rank} cannot be in the team: its parent's {pes} PEs have ranks 0 to {}",
                pes - 1
            ),
            Self::Twice { rank } => {
                write!(f, "PE {rank} is in the list twice: list each member once")
            }
            Self::Rows { rows, pes } => write!(
                f,
                "{pes} PEs are not {rows} rows of equal length: give a divisor of \
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
