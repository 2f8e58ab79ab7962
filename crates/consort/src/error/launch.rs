//! Jobs that cannot be launched, joined or left.

use std::fmt;

use consort_fabric::Rank;
use consort_native::{JoinError, MeetError};

use crate::fabric::MOST_PES;

/// A job that cannot be launched, joined or left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchError {
    /// A job without PEs.
    NoPes,
    /// More PEs than a job may have.
    TooManyPes {
        /// The number of PEs requested.
        requested: usize,
        /// The largest number allowed.
        most: usize,
    },
    /// The process was started by an MPI that cannot be used.
    Mpi(String),
    /// The process cannot be one of the PEs that `consort run` started.
    Join(JoinError),
    /// The processes of [`Job::processes`](crate::Job::processes) do not become one job.
    Meeting(MeetError),
    /// A pool whose PEs are processes.
    PoolOfProcesses,
    /// A job for threads that join it, in a process that an MPI started as one of its PEs.
    JobOfProcesses,
    /// Fewer or more inputs than PEs.
    InputCount {
        /// The number of inputs, or the number of PEs plus one if there are more.
        given: usize,
        /// The number of PEs.
        pes: usize,
    },
    /// A thread cannot join, because others run all PEs of the job, or have dropped out of a
    /// barrier for good.
    JobFull {
        /// The number of PEs.
        pes: usize,
    },
    /// A thread cannot join as this PE, because another thread runs it.
    RankTaken {
        /// The PE.
        rank: Rank,
    },
    /// A thread cannot run this PE, because another thread, which has run it before, still has
    /// handles on it: teams, symmetric memory, requests, plans or kept values.
    HeldElsewhere {
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
    /// A region inside a region of the same pool, for which the outer one would wait.
    Nested,
    /// A thread could not be started.
    Thread {
        /// The PE's rank.
        rank: Rank,
        /// The system's error, and its limit.
        reason: String,
    },
    /// A PE's program has returned, but other threads still have handles on its symmetric memory.
    StillShared {
        /// The number of handles.
        handles: usize,
    },
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPes => write!(
                f,
                "a job needs at least one PE: give Job::threads or Barrier::new a number from 1 to \
                 {MOST_PES}"
            ),
            Self::TooManyPes { requested, most } => {
                write!(f, "{requested} PEs are too many: a job has at most {most}")
            }
            Self::Mpi(text) => fmt::Display::fmt(text, f),
            Self::Join(error) => fmt::Display::fmt(error, f),
            Self::Meeting(error) => fmt::Display::fmt(error, f),
            Self::PoolOfProcesses => f.write_str(
                "a pool's PEs are threads of one process: use Job::threads, or \
                 JobBuilder::run",
            ),
            Self::JobOfProcesses => f.write_str(
                "an MPI has started this process as one of its PEs, and threads cannot join those: \
                 run the program alone, or use JobBuilder::run",
            ),
            Self::InputCount { given, pes } => {
                write!(f, "{given} inputs for {pes} PEs: give one for each")
            }
            Self::JobFull { pes } => write!(
                f,
                "the job is full: none of its {pes} PEs is free; join after a thread has left, or \
                 create the job with more PEs"
            ),
            Self::RankTaken { rank } => {
                write!(
                    f,
                    "PE {rank} is taken: another thread runs it; join after that thread has left"
                )
            }
            Self::HeldElsewhere { rank } => write!(
                f,
                "PE {rank} has handles on the thread that ran it: drop its teams, symmetric memory, \
                 requests, plans and kept values there, or run it on that thread"
            ),
            Self::JoinedAlready { rank } => write!(
                f,
                "this thread runs PE {rank} of the job already: leave before joining \
                 again"
            ),
            Self::ThreadEnds => f.write_str(
                "this thread ends: join a job before the thread's own values are \
                 dropped",
            ),
            Self::Nested => f.write_str(
                "a region of a pool inside a region of the same pool: use another \
                 pool, or a team",
            ),
            Self::Thread { rank, reason } => {
                write!(f, "cannot start a thread for PE {rank}: {reason}")
            }
            Self::StillShared { handles } => write!(
                f,
                "{handles} shared handles on symmetric memory were left when the PE \
                 ended: drop them before its program returns"
            ),
        }
    }
}

impl std::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Join(error) => error.source(),
            Self::Meeting(error) => error.source(),
            _ => None,
        }
    }
}
