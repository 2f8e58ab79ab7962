//! The errors of launches and calls, by kind. Each message says what to do instead.
//!
//! | kind of [`Error`] | meaning | details |
//! | --- | --- | --- |
//! | [`PeFailed`](Error::PeFailed) | a PE panicked, or its program returned an error | [`Error::failed_pe`] |
//! | [`Mismatched`](Error::Mismatched) | PEs made different calls, or wait for each other | [`Error::failure`] |
//! | [`TimedOut`](Error::TimedOut) | a wait took longer than its limit | [`Error::failure`], [`Failure::absent_pes`] |
//! | [`Forked`](Error::Forked) | a forked child used an object of its parent | |
//! | [`JobFailed`](Error::JobFailed) | the job has failed, and the reason cannot be read | |
//! | [`Call`](Error::Call) | an argument is wrong, or the call needs something that is no longer there | [`CallError`] |
//! | [`Launch`](Error::Launch) | a job cannot be launched, joined or left | [`LaunchError`] |
//! | [`Config`](Error::Config) | an environment variable has a value that cannot be used | [`ConfigError`] |
//! | [`Memory`](Error::Memory) | symmetric memory could not be allocated | [`HeapError`] |
//! | [`Wisdom`](Error::Wisdom) | wisdom cannot be used or written | |
//!
//! The first five end the job: see [`Error::is_fatal`].
//!
//! ```
//! use consort::{Error, Job, Rank, error::CallError};
//!
//! let ended = Job::threads(2).run(|pe| pe.world().broadcast(7, Rank(2)));
//! let error = ended.expect_err("the ranks are 0 and 1");
//! assert_eq!(error, Error::Call(CallError::RootOutOfRange { root: Rank(2), pes: 2 }));
//! ```

mod call;
mod launch;
mod team;

use std::{fmt, io};

use consort_fabric::Rank;
use consort_native::{Job, JobError};

pub use call::CallError;
pub use consort_collectives::PlanError;
pub use consort_native::{ConfigError, Failure, HeapError, JoinError, MeetError, Members};
pub use launch::LaunchError;
pub use team::TeamError;

pub use crate::{displacements::DisplacementsError, weights::WeightsError};

/// The result of a call of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a launch or a call. `Debug` shows the message, as `Display` does, so that a `main`
/// that returns the error prints the message.
///
/// The first five kinds mean that the job has failed. All its PEs get the same error, now and from
/// every later call. The other kinds concern one call or one launch, which can be tried again with
/// other arguments or settings.
///
/// Run a program that has its own error type with
/// [`JobBuilder::try_run`](crate::JobBuilder::try_run).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A PE panicked, or its program returned an error. [`Error::failed_pe`] returns both fields.
    PeFailed {
        /// The PE's rank in the world.
        rank: Rank,
        /// The panic or the error.
        reason: String,
    },
    /// The calls of the PEs do not match. PEs made different calls where all must make the same
    /// call, gave different lengths for a block that one sends to the other, or waited for each
    /// other in calls of different teams. Or a PE finished while others wait for it. Or a PE waits
    /// for a word that no PE is left to change, or for data that its algorithm never sends. The
    /// message names the PEs and their calls.
    Mismatched(Failure),
    /// A wait has exceeded its limit. The message names the call, and the PEs that have not begun
    /// it, or that no thread runs.
    TimedOut(Failure),
    /// This process is a forked child of one that runs the job, and takes no part in it. It may
    /// call `exec` or `exit`, or launch another job.
    Forked,
    /// The job has failed, and the reason cannot be read.
    JobFailed,
    /// A call that cannot be made: see [`CallError`].
    Call(CallError),
    /// A job that cannot be launched, joined or left.
    Launch(LaunchError),
    /// An environment variable has a value that cannot be used.
    Config(ConfigError),
    /// Symmetric memory could not be allocated.
    Memory(HeapError),
    /// Wisdom cannot be used or written.
    Wisdom(String),
}

impl Error {
    /// Returns the PE that failed, by its rank in the world, and the panic or error of its program,
    /// if that is why the job has failed.
    ///
    /// ```
    /// use consort::{Job, Rank};
    ///
    /// let ended = Job::threads(2).run(|pe| {
    ///     assert_ne!(pe.world().rank(), Rank(1), "an accident");
    ///     pe.world().barrier()
    /// });
    /// let error = ended.unwrap_err();
    /// let (rank, reason) = error.failed_pe().expect("a PE panicked");
    /// assert_eq!(rank, Rank(1));
    /// assert!(reason.contains("an accident"));
    /// ```
    #[must_use]
    pub fn failed_pe(&self) -> Option<(Rank, &str)> {
        match self {
            Self::PeFailed { rank, reason } => Some((*rank, reason)),
            _ => None,
        }
    }

    /// Returns the details of [`Error::Mismatched`] and [`Error::TimedOut`]: PEs and their calls.
    /// [`Failure::absent_pes`] says which PEs were late.
    ///
    /// ```
    /// use consort::{Job, Rank};
    /// use std::{thread, time::Duration};
    ///
    /// let ended = Job::threads(3).run(|pe| {
    ///     if pe.world().rank() == Rank(1) {
    ///         thread::sleep(Duration::from_millis(400)); // is late
    ///     }
    ///     pe.with_timeout(Duration::from_millis(100), || pe.world().barrier())
    /// });
    /// let error = ended.unwrap_err();
    /// let failure = error.failure().expect("the barrier took too long");
    /// assert_eq!(failure.absent_pes().expect("a PE was late").first, [Rank(1)]);
    /// ```
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Mismatched(failure) | Self::TimedOut(failure) => Some(failure),
            _ => None,
        }
    }

    /// Returns whether the job has failed with this error, so that no later call of the job can
    /// succeed.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(
            self,
            Self::PeFailed { .. }
                | Self::Mismatched(_)
                | Self::TimedOut(_)
                | Self::Forked
                | Self::JobFailed
        )
    }

    /// Returns the error that every PE of a failed job gets.
    #[cold]
    pub(crate) fn of_job(job: &Job) -> Self {
        match job.failure() {
            Some(Failure::Pe { rank, reason } | Failure::Ended { rank, reason, .. }) => {
                Self::PeFailed { rank, reason }
            }
            Some(Failure::Forked) => Self::Forked,
            Some(failure @ (Failure::Missing { .. } | Failure::TimedOut { .. })) => {
                Self::TimedOut(failure)
            }
            Some(failure) => Self::Mismatched(failure),
            None => Self::JobFailed,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeFailed { rank, reason } => write!(f, "PE {rank} failed: {reason}"),
            Self::Mismatched(failure) | Self::TimedOut(failure) => fmt::Display::fmt(failure, f),
            Self::Forked => fmt::Display::fmt(&Failure::Forked, f),
            Self::JobFailed => f.write_str("the job has failed for an unknown reason"),
            Self::Call(error) => fmt::Display::fmt(error, f),
            Self::Launch(error) => fmt::Display::fmt(error, f),
            Self::Config(error) => fmt::Display::fmt(error, f),
            Self::Memory(error) => fmt::Display::fmt(error, f),
            Self::Wisdom(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Call(error) => error.source(),
            Self::Launch(error) => error.source(),
            Self::Config(error) => error.source(),
            Self::Memory(error) => error.source(),
            _ => None,
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<LaunchError> for Error {
    fn from(error: LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<HeapError> for Error {
    fn from(error: HeapError) -> Self {
        Self::Memory(error)
    }
}

impl From<WeightsError> for Error {
    fn from(error: WeightsError) -> Self {
        Self::Call(CallError::Weights(error))
    }
}

impl From<DisplacementsError> for Error {
    fn from(error: DisplacementsError) -> Self {
        Self::Call(error.into())
    }
}

impl From<TeamError> for Error {
    fn from(error: TeamError) -> Self {
        Self::Call(error.into())
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Self::Call(error.into())
    }
}

impl From<JoinError> for Error {
    fn from(error: JoinError) -> Self {
        match error {
            JoinError::Lost { rank, reason } => Self::PeFailed { rank, reason },
            JoinError::Variable(error) => Self::Config(error),
            error => Self::Launch(LaunchError::Join(error)),
        }
    }
}

impl From<JobError> for Error {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Memory(error) => error.into(),
            JobError::Join(error) => error.into(),
        }
    }
}

/// For programs whose error type is `io::Error`.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}
