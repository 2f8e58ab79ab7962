//! What is timed: calls of Consort and of its peers.

use std::cell::{Cell, RefCell};

use consort::{Candidate, Collective, Mode, Rank, Result, Sum, Symmetric, Sync, Team};

use super::values;
use crate::peers::Peer;

/// One kind of work, timed as a whole.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Work {
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

/// One PE's buffers for one work: as many as serve in turn.
pub(crate) struct Bench<'p> {
    team: Team<'p>,
    buffers: Vec<Buffers<'p>>,
    turn: Cell<usize>,
    /// What symmetric memory is rewritten from.
    contents: Vec<f64>,
}

/// What one call moves: a broadcast has its data in the first of the two.
enum Buffers<'p> {
    Slices(RefCell<Vec<f64>>, RefCell<Vec<f64>>),
    Symmetric(Symmetric<'p, f64>, Symmetric<'p, f64>),
}

impl Bench<'_> {
    #[inline]
    fn current(&self) -> &Buffers<'_> {
        &self.buffers[self.turn.get()]
    }

    #[inline]
    fn advance(&self) {
        let next = self.turn.get() + 1;
        self.turn.set(if next == self.buffers.len() { 0 } else { next });
    }
}

impl Work {
    /// Bytes of a buffer.
    pub(crate) fn bytes(&self) -> usize {
        match *self {
            Self::Consort { bytes, .. } | Self::Peer { bytes, .. } => bytes,
        }
    }

    /// The operation.
    pub(crate) fn collective(&self) -> Collective {
        match *self {
            Self::Consort { collective, .. } | Self::Peer { collective, .. } => collective,
        }
    }

    fn symmetric(&self) -> bool {
        matches!(self, Self::Consort { symmetric: true, .. })
    }

    /// Whether both can be done on the same buffers.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        self.bytes() == other.bytes() && self.symmetric() == other.symmetric()
    }

    /// Buffers for this work on one PE, `count` of them in turn. Collective.
    pub(crate) fn prepare<'p>(&self, team: Team<'p>, count: usize) -> Result<Bench<'p>> {
        let len = self.bytes() / size_of::<f64>();
        let slice = || RefCell::new(vec![1.5; len]);
        let buffers = (0..count.max(1)).map(|_| {
            Ok(if self.symmetric() {
                Buffers::Symmetric(team.symmetric(len)?, team.symmetric(len)?)
            } else {
                Buffers::Slices(slice(), slice())
            })
        });
        let buffers = buffers.collect::<Result<_>>()?;
        Ok(Bench { team, buffers, turn: Cell::new(0), contents: vec![1.5; len] })
    }

    /// Rewrites the buffer that the next call moves: the root's of a broadcast, everyone's of a
    /// reduction.
    pub(crate) fn rewrite(&self, bench: &Bench<'_>) -> Result<()> {
        let rank = bench.team.rank();
        if self.collective().combines() || rank == Rank(0) {
            match bench.current() {
                Buffers::Symmetric(source, _) => source.put(rank, 0, &bench.contents)?,
                Buffers::Slices(source, _) => source.borrow_mut().fill(1.5),
            }
        }
        Ok(())
    }

    /// Makes one call.
    #[inline]
    pub(crate) fn call(&self, bench: &Bench<'_>, peers: &[Box<dyn Peer>]) -> Result<()> {
        let buffers = bench.current();
        bench.advance();
        match *self {
            Self::Consort { collective, sync, .. } => {
                let team = bench.team.with(sync);
                let leaves_early = sync.exit == Mode::None;
                match (collective, buffers) {
                    (Collective::Barrier, _) => team.barrier(),
                    (Collective::Broadcast, Buffers::Symmetric(data, _)) => {
                        team.broadcast_symmetric(data, Rank(0))
                    }
                    (Collective::Broadcast, Buffers::Slices(data, _)) if leaves_early => {
                        values::broadcast(&team, &mut data.borrow_mut())
                    }
                    (Collective::Reduce, Buffers::Slices(source, target)) if leaves_early => {
                        values::reduce(&team, &source.borrow(), &mut target.borrow_mut())
                    }
                    (Collective::AllReduce, Buffers::Slices(source, target)) if leaves_early => {
                        values::all_reduce(&team, &source.borrow(), &mut target.borrow_mut())
                    }
                    (Collective::Broadcast, Buffers::Slices(data, _)) => {
                        team.broadcast_slice(&mut data.borrow_mut(), Rank(0))
                    }
                    (Collective::Reduce, Buffers::Symmetric(source, target)) => {
                        team.reduce_symmetric(source, target, Sum, Rank(0))
                    }
                    (Collective::Reduce, Buffers::Slices(source, target)) => {
                        team.reduce_slice(&source.borrow(), &mut target.borrow_mut(), Sum, Rank(0))
                    }
                    (Collective::AllReduce, Buffers::Symmetric(source, target)) => {
                        team.all_reduce_symmetric(source, target, Sum)
                    }
                    (Collective::AllReduce, Buffers::Slices(source, target)) => {
                        team.all_reduce_slice(&source.borrow(), &mut target.borrow_mut(), Sum)
                    }
                }
            }
            Self::Peer { index, collective, .. } => {
                call_peer(&*peers[index], collective, bench.team.rank(), buffers);
                Ok(())
            }
        }
    }
}

/// A peer knows slices only.
#[inline]
fn call_peer(peer: &dyn Peer, collective: Collective, rank: Rank, buffers: &Buffers<'_>) {
    match (collective, buffers) {
        (Collective::Broadcast, Buffers::Slices(data, _)) => {
            peer.broadcast(rank.0, 0, bytemuck::cast_slice_mut(&mut data.borrow_mut()));
        }
        (Collective::Reduce, Buffers::Slices(source, target)) => {
            peer.reduce(rank.0, 0, &source.borrow(), &mut target.borrow_mut());
        }
        (Collective::AllReduce, Buffers::Slices(source, target)) => {
            peer.all_reduce(rank.0, &source.borrow(), &mut target.borrow_mut());
        }
        _ => peer.barrier(rank.0),
    }
}
