//! The reasons why processes do not become one job.

use std::{fmt, time::Duration};

use consort_fabric::Rank;

use crate::processes::rank_list::list_of_ranks;

/// The reason why the processes that were to become one job do not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeetError {
    /// The exchange of bytes between the processes failed, for this reason.
    Exchange(String),
    /// The process through which the others meet has reported this.
    Reported(String),
    /// The exchange returned the bytes of another number of processes.
    Count {
        /// The number of processes whose bytes it returned.
        got: usize,
        /// The number of PEs.
        pes: usize,
    },
    /// The exchange returned bytes that Consort has not sent.
    Garbled,
    /// A name, a descriptor or an address that cannot be used.
    Place(String),
    /// Some processes did not join.
    Late {
        /// Where they were to join.
        place: String,
        /// The PEs whose processes did not join.
        missing: Vec<Rank>,
        /// How long the others waited.
        limit: Duration,
    },
    /// Another job has the place where the processes were to meet.
    InUse {
        /// The place.
        place: String,
        /// The process that has it, if known.
        process: Option<u32>,
        /// How long this process waited for it.
        limit: Duration,
    },
    /// A process of another user has the place where the processes were to meet.
    OtherUser {
        /// The place.
        place: String,
        /// The process that has it, and the number of its user, if known.
        owner: Option<(u32, u32)>,
    },
    /// A process ended while the processes met.
    Lost {
        /// Its PE, if known.
        rank: Option<Rank>,
        /// The process, if known.
        process: Option<u32>,
    },
    /// Two processes have the same rank.
    Taken {
        /// The rank.
        rank: Rank,
        /// The processes.
        processes: [u32; 2],
    },
    /// Two PEs are the same process.
    OneProcess {
        /// Their ranks.
        ranks: [Rank; 2],
        /// The process.
        process: u32,
    },
    /// Two processes expect different numbers of PEs.
    Sizes {
        /// The processes, with their ranks.
        processes: [(Rank, u32); 2],
        /// The number that each expects.
        sizes: [usize; 2],
    },
    /// Two processes have different versions of Consort.
    Versions {
        /// The processes, with their ranks.
        processes: [(Rank, u32); 2],
        /// The version of each.
        versions: [String; 2],
    },
    /// Two processes may not share memory.
    Apart {
        /// The processes, with their ranks.
        processes: [(Rank, u32); 2],
        /// The fact in which they differ.
        fact: &'static str,
    },
    /// Another launcher has started the processes on several machines, as far as it says.
    Machines {
        /// The launcher.
        launcher: &'static str,
        /// How to start them on one machine.
        remedy: &'static str,
    },
    /// A setting of the job is not the same in two processes.
    Settings {
        /// The setting.
        what: String,
        /// The ranks of the processes, each with its setting.
        settings: [(Rank, String); 2],
    },
    /// A process cannot take part.
    Refused {
        /// Its PE.
        rank: Rank,
        /// Why not.
        reason: String,
    },
}

/// Returns the words for a process.
fn named(process: Option<u32>) -> String {
    process.map_or_else(|| "a process".to_owned(), |process| format!("process {process}"))
}

impl fmt::Display for MeetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exchange(text) => write!(f, "the processes of the job did not meet: {text}"),
            Self::Reported(text) | Self::Place(text) => f.write_str(text),
            Self::Count { got, pes } => write!(
                f,
                "the exchange returned the bytes of {got} processes, but the job has {pes} PEs: \
                 return the bytes of each process once"
            ),
            Self::Garbled => f.write_str(
                "the exchange returned bytes that no process of the job has sent: return each \
                 process's bytes unchanged, and those of one exchange at a time",
            ),
            Self::Late { place, missing, limit } => write!(
                f,
                "{} did not join the job with {place} within {limit:?}: start one process \
                 for each rank, or raise the limit with `Rendezvous::timeout`",
                list_of_ranks(missing)
            ),
            Self::InUse { place, process, limit } => write!(
                f,
                "{place} has been in use for {limit:?} by a job that is complete{}: give each job its \
                 own place to meet, and start one process for each rank",
                process.map(|process| format!(" (process {process})")).unwrap_or_default()
            ),
            Self::OtherUser { place, owner } => {
                let owner = owner.map_or_else(
                    || "another user".to_owned(),
                    |(process, user)| format!("process {process} of user {user}"),
                );
                write!(
                    f,
                    "{place} is in use by {owner}: only processes of one user share memory; meet at \
                     another place, or start all as one user"
                )
            }
            Self::Lost { rank: Some(rank), process } => {
                write!(f, "PE {rank} failed: {} ended before the job began", named(*process))
            }
            Self::Lost { rank: None, process } => {
                write!(f, "{} of the job ended before the job began", named(*process))
            }
            Self::Taken { rank, processes: [one, other] } => write!(
                f,
                "processes {one} and {other} both want to be PE {rank}: give each its own rank, \
                 and each job its own place to meet"
            ),
            Self::OneProcess { ranks: [one, other], process } => write!(
                f,
                "process {process} wants to be PE {one} and PE {other}: a PE is a process here; \
                 use Job::threads for PEs of one process"
            ),
            Self::Sizes { processes: [one, other], sizes } => write!(
                f,
                "PE {} (process {}) is of a job of {} PEs, and PE {} (process {}) of one of {}: \
                 give all the same size, and each job its own place to meet",
                one.0, one.1, sizes[0], other.0, other.1, sizes[1]
            ),
            Self::Versions { processes: [one, other], versions } if versions[0] == versions[1] => {
                write!(
                    f,
                    "PE {} (process {}) and PE {} (process {}) have different builds of Consort \
                     {}: build both from the same sources",
                    one.0, one.1, other.0, other.1, versions[0]
                )
            }
            Self::Versions { processes: [one, other], versions } => write!(
                f,
                "PE {} (process {}) has Consort {}, and PE {} (process {}) has {}: build all with \
                 the same version",
                one.0, one.1, versions[0], other.0, other.1, versions[1]
            ),
            Self::Apart { processes: [one, other], fact } => write!(
                f,
                "PE {} (process {}) and PE {} (process {}) cannot be in one job, because each has \
                 another {fact}: start all as one user of one machine, in the same namespaces",
                one.0, one.1, other.0, other.1
            ),
            Self::Machines { launcher, remedy } => write!(
                f,
                "`{launcher}` has started the processes of this job on several machines, and only \
                 those of one machine can be a job without an MPI: {remedy}; or start the program \
                 by the `mpirun` of an MPI"
            ),
            Self::Settings { what, settings: [one, other] } => write!(
                f,
                "the {what} must be the same in all processes, but PE {} has {}, and PE {} has {}",
                one.0, one.1, other.0, other.1
            ),
            Self::Refused { rank, reason } => write!(f, "PE {rank} cannot take part: {reason}"),
        }
    }
}

impl std::error::Error for MeetError {}
