//! The reason why a job has failed.

use std::{fmt, time::Duration};

use consort_fabric::Rank;

use crate::team::message::{is_message, sends};

/// The reason why a job has failed. It is recorded once, and the errors of all PEs contain it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// A PE panicked, or its program returned an error.
    Pe {
        /// The PE.
        rank: Rank,
        /// The message of the panic or error.
        reason: String,
    },
    /// A PE has ended the job on purpose.
    Ended {
        /// The PE.
        rank: Rank,
        /// The exit status of the job.
        status: u8,
        /// How the PE ended the job.
        reason: String,
    },
    /// Two PEs made different calls when both should have made the same call.
    Mismatched {
        /// The number of calls on this team that matched before this call.
        call: u64,
        /// One PE and its call.
        one: (Rank, String),
        /// Another PE and its call.
        other: (Rank, String),
        /// The team.
        team: Members,
    },
    /// Two PEs disagree on the length of a block that one sends to the other in a vector variant.
    Counts {
        /// The call, and its team.
        call: String,
        /// The PE whose buffer the block is copied to or from, and the length in bytes that it
        /// expects.
        owner: (Rank, usize),
        /// The PE that should copy the block, and the length in bytes that it expects.
        peer: (Rank, usize),
    },
    /// A PE finished while another PE waits in a call that the first never made.
    Finished {
        /// The PE that finished.
        rank: Rank,
        /// The PE that waits.
        waiting: Rank,
        /// The call in which it waits.
        call: String,
        /// The team.
        team: Members,
    },
    /// A PE waits for a word that no PE is left to change: all other PEs wait or have finished.
    NobodyLeft {
        /// The PE that waits for the word.
        waiting: Rank,
        /// Another PE that waits, if any, and the call in which it waits.
        other: Option<(Rank, String)>,
    },
    /// A PE waits for PEs that no thread runs.
    Missing {
        /// The missing PEs, and their number.
        missing: Members,
        /// The PE that waits.
        waiting: Rank,
        /// The call in which it waits.
        call: String,
        /// The limit for the wait.
        limit: Duration,
    },
    /// A PE has waited in a call for longer than its limit.
    TimedOut {
        /// The PE.
        rank: Rank,
        /// The call.
        call: String,
        /// The limit for the wait.
        limit: Duration,
        /// The PEs that have not begun the call, and their number.
        late: Members,
    },
    /// PEs wait for each other in calls of different teams: each call lacks a PE that waits in
    /// another call.
    Deadlock {
        /// One PE and the call in which it waits.
        one: (Rank, String),
        /// A PE that has not begun that call, and the call in which it waits.
        other: (Rank, String),
    },
    /// A PE waits in a call for something that no PE sends: every PE of the call has begun it, and
    /// waits or has finished.
    Starved {
        /// The PE that waits.
        waiting: Rank,
        /// The call, with its algorithm and its team.
        call: String,
        /// The event that the PE waits for.
        awaited: String,
    },
    /// This process is a forked child of a process of the job, and not part of the job.
    Forked,
}

impl Failure {
    /// Returns the PEs that others waited for in vain: those that had not begun the call when its
    /// time limit ended, or that no thread ran. `None` if the job has failed for another reason, or
    /// if no PE was late.
    ///
    /// ```
    /// use consort_fabric::Rank;
    /// use consort_native::{Failure, Members};
    /// use std::time::Duration;
    ///
    /// let limit = Duration::from_secs(1);
    /// let late = Members { first: vec![Rank(3)], size: 1 };
    /// let failure = Failure::TimedOut { rank: Rank(0), call: "barrier".to_owned(), limit, late };
    /// assert_eq!(failure.absent_pes().expect("a PE was late").first, [Rank(3)]);
    /// assert_eq!(Failure::Forked.absent_pes(), None);
    /// ```
    #[must_use]
    pub fn absent_pes(&self) -> Option<&Members> {
        match self {
            Self::Missing { missing: absent, .. } | Self::TimedOut { late: absent, .. } => {
                (absent.size > 0).then_some(absent)
            }
            _ => None,
        }
    }
}

/// The PEs of a failure, such as a team: the first of them, and their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// The ranks in the world of at most 16 members; empty for the team of all PEs.
    pub first: Vec<Rank>,
    /// The number of members; 0 for the team of all PEs.
    pub size: usize,
}

impl Members {
    /// The maximum number of members that are listed.
    pub(crate) const NAMED: usize = 16;

    pub(crate) fn of(size: usize, ranks: impl Iterator<Item = Rank>) -> Self {
        Self { first: ranks.take(Self::NAMED).collect(), size }
    }

    /// Formats the members: `PEs 0, 1, 2`.
    fn list(&self) -> String {
        let ranks: Vec<String> = self.first.iter().map(Rank::to_string).collect();
        let plural = if self.size == 1 { "" } else { "s" };
        let mut list = format!("PE{plural} {}", ranks.join(", "));
        if self.size > self.first.len() {
            list += &format!(", ... ({} in all)", self.size);
        }
        list
    }
}

impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first.is_empty() { Ok(()) } else { write!(f, " in the team of {}", self.list()) }
    }
}

/// Returns the kind of a deadlock of PEs that wait in these calls, and advice on how to avoid it.
fn about_deadlock(calls: [&str; 2]) -> (&'static str, &'static str) {
    if calls.into_iter().any(sends) {
        let advice = "a sender waits for its receiver if a message is long, or if 48 messages \
                      before it have not been received: let one PE receive first, or use \
                      `send_receive`";
        return ("", advice);
    }
    if calls.into_iter().any(is_message) {
        return ("", "a message must be sent before its sender waits for another PE");
    }
    (" between teams", "all PEs must call their teams in a consistent order")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pe { rank, reason } => write!(f, "PE {rank} failed: {reason}"),
            Self::Ended { rank, reason, .. } => write!(f, "PE {rank} ended the job: {reason}"),
            Self::Mismatched { call, one, other, .. }
                if is_message(&one.1) && is_message(&other.1) =>
            {
                write!(
                    f,
                    "two PEs disagree about message {call}: PE {} called {}, PE {} called {}; both \
                     must give the same length and type",
                    one.0, one.1, other.0, other.1
                )
            }
            Self::Mismatched { call, one, other, team } => write!(
                f,
                "calls do not match at call {call}{}: PE {} called {}, PE {} called {}; all PEs of \
                 a team must make the same calls in the same order",
                team, one.0, one.1, other.0, other.1
            ),
            Self::Counts { call, owner, peer } => write!(
                f,
                "counts do not match in {call}: for the block between PE {0} and PE {1}, PE {0} \
                 gave {2} bytes and PE {1} gave {3}; both must give the same length",
                owner.0, peer.0, owner.1, peer.1
            ),
            Self::Finished { rank, waiting, call, .. } if is_message(call) => {
                let missing = if sends(call) { "receiving" } else { "sending" };
                write!(
                    f,
                    "PE {rank} finished without {missing} a message: PE {waiting} called {call}; \
                     each message must be sent and received"
                )
            }
            Self::Finished { rank, waiting, call, team } => write!(
                f,
                "PE {rank} finished while PE {waiting} waits for it in {call}{team}; all PEs of a \
                 team must make the same calls"
            ),
            Self::NobodyLeft { waiting, other } => {
                write!(f, "PE {waiting} waits for a word that no PE is left to change")?;
                match other {
                    Some((rank, call)) => write!(f, ": PE {rank} waits in {call}")?,
                    None => write!(f, ": all others have finished")?,
                }
                f.write_str("; change the word before the call or the end of the program")
            }
            Self::Missing { missing, waiting, call, limit } => write!(
                f,
                "no thread has run {} for {limit:?}, while PE {waiting} waits in {call}: each PE \
                 needs a thread that joins in time",
                missing.list()
            ),
            Self::TimedOut { rank, call, limit, late } if late.size == 0 => {
                write!(f, "PE {rank} waited for more than {limit:?} in {call}")
            }
            Self::TimedOut { rank, call, limit, late } => write!(
                f,
                "PE {rank} waited for more than {limit:?} in {call}; missing: {}",
                late.list()
            ),
            // Sends and receives between two PEs have no algorithm.
            Self::Starved { waiting, call, awaited }
                if ["send", "receive"].iter().any(|name| call.starts_with(name)) =>
            {
                write!(
                    f,
                    "PE {waiting} waits in {call} for {awaited}, which never arrives, because its \
                     peer waits or has finished; check that both give the same length and type"
                )
            }
            Self::Starved { waiting, call, awaited } => write!(
                f,
                "PE {waiting} waits in {call} for {awaited}, which no PE sends: every PE of the \
                 call has begun it, and waits or has finished; check what its algorithm sends and \
                 waits for"
            ),
            Self::Deadlock { one, other } => {
                let (of, advice) = about_deadlock([&one.1, &other.1]);
                write!(
                    f,
                    "a deadlock{of}: PE {} waits in {}, which PE {} has not begun: it waits in \
                     {}; {advice}",
                    one.0, one.1, other.0, other.1
                )
            }
            Self::Forked => f.write_str(
                "this process is a forked child of one that runs the job, and takes no part in it: \
                 let it call exec or exit, or launch another job",
            ),
        }
    }
}
