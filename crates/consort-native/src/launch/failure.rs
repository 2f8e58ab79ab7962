//! Why a job has failed.

use std::{fmt, time::Duration};

use consort_fabric::Rank;

use crate::team::message::{is_message, sends};

/// Why a job has failed. Recorded once; every PE's error is made from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A PE panicked, or returned an error of its own.
    Pe {
        /// The PE.
        rank: Rank,
        /// The message of its panic or error.
        reason: String,
    },
    /// A PE has ended the job on purpose.
    Ended {
        /// The PE.
        rank: Rank,
        /// The exit status that it gives the job.
        status: u8,
        /// How it has done that.
        reason: String,
    },
    /// Two PEs made different calls where the same call was due.
    Mismatched {
        /// How many calls on this team matched before this one.
        call: u64,
        /// One PE and its call.
        one: (Rank, String),
        /// Another PE and its call.
        other: (Rank, String),
        /// The team.
        team: Members,
    },
    /// Two PEs disagree on the length of a block that one of them sends to the other in a vector
    /// variant.
    Counts {
        /// The call, and its team.
        call: String,
        /// The PE whose buffer the block is copied to or from, and its length of the block in
        /// bytes.
        owner: (Rank, usize),
        /// The PE that was to copy the block, and its length of the block in bytes.
        peer: (Rank, usize),
    },
    /// A PE finished while another waits in a call that the first never made.
    Finished {
        /// The PE that finished.
        rank: Rank,
        /// The PE that waits.
        waiting: Rank,
        /// The call that it waits in.
        call: String,
        /// The team.
        team: Members,
    },
    /// A PE waits for a word that no PE is left to change: all others wait, or have finished.
    NobodyLeft {
        /// The PE that waits for the word.
        waiting: Rank,
        /// Another PE, if one waits, and what it waits in.
        other: Option<(Rank, String)>,
    },
    /// No thread runs some PEs, for which another one waits.
    Missing {
        /// The PEs, and how many they are.
        missing: Members,
        /// The PE that waits.
        waiting: Rank,
        /// The call that it waits in.
        call: String,
        /// How long it was to wait.
        limit: Duration,
    },
    /// A PE has waited in a call for longer than it was to.
    TimedOut {
        /// The PE.
        rank: Rank,
        /// The call.
        call: String,
        /// How long it was to wait.
        limit: Duration,
        /// The PEs that have not begun the call, and how many they are.
        late: Members,
    },
    /// PEs wait for each other in calls of different teams: each call lacks a PE that waits in
    /// another.
    Deadlock {
        /// One PE and the call that it waits in.
        one: (Rank, String),
        /// A PE that has not begun that call, and the call that it waits in.
        other: (Rank, String),
    },
    /// A PE waits in a call for what no PE sends: every PE of the call has begun it, and waits or
    /// has finished.
    Starved {
        /// The PE.
        waiting: Rank,
        /// The call, with its algorithm and its team.
        call: String,
        /// What it waits for.
        awaited: String,
    },
    /// This process is a forked child of one of the job, and takes no part in it.
    Forked,
}

/// The team of a failure: its first members, and its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Ranks in the world of at most 16 members; none for the world.
    pub first: Vec<Rank>,
    /// The number of members; 0 for the world.
    pub size: usize,
}

impl Members {
    /// The largest number of members that are named.
    pub(crate) const NAMED: usize = 16;

    /// A team of `size` members with these ranks in the world.
    pub(crate) fn of(size: usize, ranks: impl Iterator<Item = Rank>) -> Self {
        Self { first: ranks.take(Self::NAMED).collect(), size }
    }

    /// The members: `PEs 0, 1, 2`.
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

/// The kind of a deadlock of PEs that wait in these calls, and how to avoid it.
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
    (" between teams", "all PEs must call their teams in an order that all can follow")
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
                "calls do not match at call {call}{}: PE {} called {}, PE {} called {}",
                team, one.0, one.1, other.0, other.1
            ),
            Self::Counts { call, owner, peer } => write!(
                f,
                "counts do not match in {call}: of the block between PE {0} and PE {1}, PE {0} \
                 says that it has {2} bytes, PE {1} that it has {3}",
                owner.0, peer.0, owner.1, peer.1
            ),
            Self::Finished { rank, waiting, call, .. } if is_message(call) => {
                let missing = if sends(call) { "receiving" } else { "sending" };
                write!(
                    f,
                    "PE {rank} finished without {missing} a message: PE {waiting} called {call}"
                )
            }
            Self::Finished { rank, waiting, call, team } => {
                write!(f, "PE {rank} finished while PE {waiting} waits for it in {call}{team}")
            }
            Self::NobodyLeft { waiting, other } => {
                write!(f, "PE {waiting} waits for a word that no PE is left to change")?;
                match other {
                    Some((rank, call)) => write!(f, ": PE {rank} waits in {call}"),
                    None => write!(f, ": all others have finished"),
                }
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
                "PE {rank} waited for more than {limit:?} in {call}; not there: {}",
                late.list()
            ),
            // The call of two PEs that send and receive has no algorithm.
            Self::Starved { waiting, call, awaited }
                if ["send", "receive"].iter().any(|name| call.starts_with(name)) =>
            {
                write!(
                    f,
                    "PE {waiting} waits in {call} for {awaited}, which never comes, since its peer \
                     waits or has finished; check that both give the same length and type"
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
