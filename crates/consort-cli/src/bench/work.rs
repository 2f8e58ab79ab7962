//! What is timed: calls of Consort and of its peers.

use std::cell::RefCell;

use consort::{Candidate, Collective, Rank, Result, Sum, Symmetric, Sync, Team};

use crate::peers::Peer;

/// One kind of work, timed as a whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A collective of Consort.
    Consort {
        /// Which.
        collective: Collective,
        /// Its modes.
        sync: Sync,
        /// Bytes a PE contributes or receives; whole doubles.
        bytes: usize,
        /// In symmetric memory rather than in slices.
        symmetric: bool,
        /// By this algorithm, or by the one that Consort chooses.
        candidate: Option<Candidate>,
    },
    /// The same by a thread library, by its index in [`crate::peers::peers`].
    Peer {
        /// Which library.
        index: usize,
        /// Which collective.
        collective: Collective,
        /// Bytes a PE contributes or receives.
        bytes: usize,
    },
}

/// One PE's buffers for one work.
pub struct Bench<'p> {
    team: Team<'p>,
    source: RefCell<Vec<f64>>,
    target: RefCell<Vec<f64>>,
    symmetric: Option<(Symmetric<'p, f64>, Symmetric<'p, f64>)>,
}

impl Work {
    /// Bytes of a buffer.
    pub fn bytes(&self) -> usize {
        match *self {
            Self::Consort { bytes, .. } | Self::Peer { bytes, .. } => bytes,
        }
    }

    /// Buffers for this work on one PE. Collective.
    pub fn prepare<'p>(&self, team: Team<'p>) -> Result<Bench<'p>> {
        let len = self.bytes() / size_of::<f64>();
        let symmetric = match self {
            Self::Consort { symmetric: true, .. } => {
                Some((team.symmetric(len)?, team.symmetric(len)?))
            }
            _ => None,
        };
        let buffer = || RefCell::new(vec![1.5; len]);
        Ok(Bench { team, source: buffer(), target: buffer(), symmetric })
    }

    /// The operation.
    pub fn collective(&self) -> Collective {
        match *self {
            Self::Consort { collective, .. } | Self::Peer { collective, .. } => collective,
        }
    }

    /// Rewrites the buffer that a call moves: the root's of a broadcast, everyone's of a reduction.
    pub fn rewrite(&self, bench: &Bench<'_>, seed: f64) -> Result<()> {
        let rank = bench.team.rank();
        if self.collective() == Collective::Reduce || rank.0 == 0 {
            match &bench.symmetric {
                Some((source, _)) => source.put(rank, 0, &vec![seed; source.len()])?,
                None => bench.source.borrow_mut().fill(seed),
            }
        }
        Ok(())
    }

    /// Makes one call.
    #[inline]
    pub fn call(&self, bench: &Bench<'_>, peers: &[Box<dyn Peer>]) -> Result<()> {
        let rank = bench.team.rank();
        let (source, target) = (&bench.source, &bench.target);
        match *self {
            Self::Consort { collective, sync, .. } => {
                let team = bench.team.with(sync);
                match (collective, &bench.symmetric) {
                    (Collective::Barrier, _) => team.barrier(),
                    (Collective::Broadcast, Some((data, _))) => {
                        team.broadcast_symmetric(data, Rank(0))
                    }
                    (Collective::Broadcast, None) => {
                        team.broadcast_slice(&mut source.borrow_mut(), Rank(0))
                    }
                    (Collective::Reduce, Some((from, to))) => {
                        team.reduce_symmetric(from, to, Sum, Rank(0))
                    }
                    (Collective::Reduce, None) => {
                        team.reduce_slice(&source.borrow(), &mut target.borrow_mut(), Sum, Rank(0))
                    }
                }
            }
            Self::Peer { index, collective, .. } => {
                let peer = &peers[index];
                match collective {
                    Collective::Barrier => peer.barrier(rank.0),
                    Collective::Broadcast => {
                        let mut data = source.borrow_mut();
                        peer.broadcast(rank.0, 0, bytes_of(&mut data));
                    }
                    Collective::Reduce => {
                        peer.reduce(rank.0, 0, &source.borrow(), &mut target.borrow_mut());
                    }
                }
                Ok(())
            }
        }
    }
}

fn bytes_of(data: &mut [f64]) -> &mut [u8] {
    bytemuck::cast_slice_mut(data)
}
