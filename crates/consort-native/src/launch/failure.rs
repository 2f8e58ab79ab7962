//! Why a job has failed.

use std::fmt;

use consort_fabric::Rank;

/// Why a job has failed. Kept once; what every PE's error is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A PE panicked, or returned an error of its own.
    Pe {
        /// Which.
        rank: Rank,
        /// What it said.
        reason: String,
    },
    /// Two PEs made different calls where the same was due.
    Mismatched {
        /// Calls that went well before this one, on this team.
        call: u64,
        /// One PE and what it called.
        one: (Rank, String),
        /// Another and what it called instead.
        other: (Rank, String),
        /// The team.
        team: Members,
    },
    /// Two PEs of a vector variant do not say the same of the block that goes from one to the
    /// other.
    Counts {
        /// What they called, and in which team.
        call: String,
        /// The PE whose buffer the block is copied to or from, and how long it says that it is, in
        /// bytes.
        owner: (Rank, usize),
        /// The PE that was to copy it, and how long that says that it is, in bytes.
        peer: (Rank, usize),
    },
    /// A PE finished while others wait in a call that it never made.
    Finished {
        /// Who finished.
        rank: Rank,
        /// Who waits.
        waiting: Rank,
        /// In what.
        call: String,
        /// The team.
        team: Members,
    },
    /// PEs wait for each other in calls of different teams, each of which another has not begun.
    Deadlock {
        /// One PE and the call that it waits in.
        one: (Rank, String),
        /// A PE that has not begun that call, and the one that it waits in.
        other: (Rank, String),
    },
}

/// The team in which something happened: its first members, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Ranks in the world of at most 16 members; none for the world.
    pub first: Vec<Rank>,
    /// How many members there are; 0 for the world.
    pub size: usize,
}

impl Members {
    /// Members that are named.
    pub(crate) const NAMED: usize = 16;

    /// A team of so many members, who have these ranks in the world.
    pub(crate) fn of(size: usize, ranks: impl Iterator<Item = Rank>) -> Self {
        Self { first: ranks.take(Self::NAMED).collect(), size }
    }
}

impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.first.split_first() else { return Ok(()) };
        let plural = if rest.is_empty() { "" } else { "s" };
        write!(f, " in the team of PE{plural} {first}")?;
        for rank in rest {
            write!(f, ", {rank}")?;
        }
        if self.size > self.first.len() {
            write!(f, ", ... ({} in all)", self.size)
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pe { rank, reason } => write!(f, "PE {rank} failed: {reason}"),
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
            Self::Finished { rank, waiting, call, team } => {
                write!(f, "PE {rank} finished while PE {waiting} waits for it in {call}{team}")
            }
            Self::Deadlock { one, other } => write!(
                f,
                "a deadlock between teams: PE {} waits in {}, which PE {} has not begun: it waits \
                 in {}; all PEs must call their teams in an order that all can follow",
                one.0, one.1, other.0, other.1
            ),
        }
    }
}
