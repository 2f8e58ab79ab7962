//! Point-to-point communication: operations of PE 0 on the memory of PE 1.
//!
//! | pattern | a call | in MPI |
//! | --- | --- | --- |
//! | put-signal | a put with a signal, awaited by PE 1, and back | `MPI_Send` to `MPI_Recv`, back |
//! | put-rate | 64 puts, and a quiet | 64 `MPI_Isend`, 64 `MPI_Irecv`, an empty reply |
//! | put-bandwidth | 16 puts, and a quiet | 16 `MPI_Isend`, 16 `MPI_Irecv`, an empty reply |
//!
//! The reply has the same meaning as a quiet: all messages have arrived. Each message has a
//! separate place at the target, and all have the same source. PE 1 takes no part in puts: it waits
//! in the barrier at the end of a block.

use std::{cell::Cell, collections::BTreeMap};

use consort::{
    Rank, Result, Symmetric, Team,
    symmetric::{Signal, Until},
};
use serde::{Deserialize, Serialize};

consort_fabric::named_enum! {
    /// Operations between two PEs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
    pub enum Pattern {
        /// The round trip of a put with a signal.
        PutSignal = "put-signal",
        /// Many small puts.
        PutRate = "put-rate",
        /// Some large puts.
        PutBandwidth = "put-bandwidth",
    }
}

impl Pattern {
    /// Returns the number of messages of a call, if they all go in one direction.
    pub const fn messages(self) -> Option<u32> {
        match self {
            Self::PutSignal => None,
            Self::PutRate => Some(64),
            Self::PutBandwidth => Some(16),
        }
    }

    /// Returns the number of messages of a call, as a parameter in results.
    pub(crate) fn parameters(self) -> Option<BTreeMap<String, u64>> {
        self.messages().map(|messages| [("messages".to_owned(), messages.into())].into())
    }

    /// Returns the operations of a call.
    pub const fn operations(self) -> &'static str {
        match self {
            Self::PutSignal => "put_signal, wait_until",
            Self::PutRate | Self::PutBandwidth => "put, quiet",
        }
    }

    /// Returns the corresponding operations of MPI programs.
    pub const fn operations_of_mpi(self) -> &'static str {
        match self {
            Self::PutSignal => "MPI_Send, MPI_Recv",
            Self::PutRate | Self::PutBandwidth => "MPI_Isend, MPI_Irecv",
        }
    }

    /// Returns the default size of a message, and the largest size.
    pub const fn bytes(self) -> [usize; 2] {
        match self {
            Self::PutSignal => [8, 64 << 20],
            Self::PutRate => [8, 64 << 10],
            Self::PutBandwidth => [1 << 20, 64 << 20],
        }
    }

    /// Returns the bytes of symmetric memory that calls with messages of `bytes` bytes need.
    pub(super) fn heap_bytes(self, bytes: usize) -> usize {
        self.messages().unwrap_or(1) as usize * bytes + size_of::<u64>()
    }

    /// Allocates memory for calls with messages of `bytes` bytes, which are whole words.
    /// Collective.
    pub(super) fn prepare(self, team: &Team, bytes: usize) -> Result<Pair> {
        let words = bytes / size_of::<u64>();
        Ok(Pair {
            me: team.rank(),
            target: team.symmetric(self.messages().unwrap_or(1) as usize * words)?,
            trips: team.symmetric(1)?,
            source: vec![1; words],
            tripped: Cell::new(0),
        })
    }
}

pub(super) struct Pair {
    me: Rank,
    target: Symmetric<u64>,
    /// The number of messages that have arrived, for round trips.
    trips: Symmetric<u64>,
    source: Vec<u64>,
    tripped: Cell<u64>,
}

impl Pair {
    /// Performs this PE's part in a call.
    #[inline]
    pub(super) fn call(&self, pattern: Pattern) -> Result<()> {
        match (pattern.messages(), self.me) {
            (None, Rank(0)) => {
                self.send(Rank(1))?;
                self.receive()
            }
            (None, Rank(1)) => {
                self.receive()?;
                self.send(Rank(0))
            }
            (Some(messages), Rank(0)) => {
                for message in 0..messages as usize {
                    self.target.put(Rank(1), message * self.source.len(), &self.source)?;
                }
                self.target.quiet()
            }
            _ => Ok(()),
        }
    }

    fn send(&self, to: Rank) -> Result<()> {
        self.target.put_signal(to, 0, &self.source, &self.trips, 0, Signal::Add(1))
    }

    fn receive(&self) -> Result<()> {
        self.tripped.set(self.tripped.get() + 1);
        self.trips.wait_until(0, Until::AtLeast(self.tripped.get())).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use consort::Job;

    use super::*;

    #[test]
    fn all_messages_of_a_call_arrive() {
        for pattern in Pattern::EVERY {
            let words = Job::threads(2).run(|pe| {
                let world = pe.world();
                let pair = pattern.prepare(world, 24)?;
                for _ in 0..3 {
                    pair.call(pattern)?;
                }
                world.barrier()?;
                pair.target.to_vec()
            });
            let words = words.unwrap();
            let all = 3 * pattern.messages().unwrap_or(1) as usize;
            assert_eq!(words[1], vec![1; all], "{pattern:?}");
            let came_back = if pattern == Pattern::PutSignal { 1 } else { 0 };
            assert_eq!(words[0], vec![came_back; all], "{pattern:?}");
        }
    }
}
