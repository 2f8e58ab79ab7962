//! The kinds of work that are timed: calls of Consort and of its peers.

use std::cell::{Cell, RefCell};

use consort::{
    Candidate, Collective, Query, Rank, Result, Sum, Symmetric, SyncMode, SyncModes, Team,
};

use super::values;
use crate::peers::threads::Peer;

/// One kind of work, timed as a whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A collective of Consort.
    Consort {
        /// The collective.
        collective: Collective,
        /// Its modes.
        sync: SyncModes,
        /// Bytes of a block; whole doubles.
        bytes: usize,
        /// Whether the buffers are symmetric memory, not slices.
        symmetric: bool,
        /// The algorithm; `None` for the one that Consort chooses.
        candidate: Option<Candidate>,
    },
    /// The same collective by a thread library.
    Peer {
        /// The library, as an index into [`crate::peers::threads::peers`].
        index: usize,
        /// The collective.
        collective: Collective,
        /// Bytes of a block; whole doubles.
        bytes: usize,
    },
}

/// One PE's buffers for one work, which are used in turn.
pub struct Bench<'p> {
    team: Team<'p>,
    buffers: Vec<Buffers<'p>>,
    turn: Cell<usize>,
    /// The data for rewriting symmetric memory.
    contents: Vec<f64>,
}

/// Source and target of one call. In symmetric memory a broadcast's data is in the source.
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
    /// A call as in `query`, served by `candidate`.
    pub fn of(query: &Query, candidate: &Candidate) -> Self {
        Self::Consort {
            collective: query.collective,
            sync: query.sync,
            bytes: usize::try_from(query.bytes).unwrap_or(usize::MAX),
            symmetric: query.symmetric && query.collective != Collective::Barrier,
            candidate: Some(candidate.clone()),
        }
    }

    /// Bytes of a block.
    pub fn bytes(&self) -> usize {
        match *self {
            Self::Consort { bytes, .. } | Self::Peer { bytes, .. } => bytes,
        }
    }

    /// The operation.
    pub fn collective(&self) -> Collective {
        match *self {
            Self::Consort { collective, .. } | Self::Peer { collective, .. } => collective,
        }
    }

    fn symmetric(&self) -> bool {
        matches!(self, Self::Consort { symmetric: true, .. })
    }

    /// Whether both works can use the same buffers.
    pub fn shares(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
            && self.symmetric() == other.symmetric()
            && self.collective() == other.collective()
    }

    /// Buffers for this work on one PE, `count` of them in turn. Collective.
    pub fn prepare<'p>(&self, team: Team<'p>, count: usize) -> Result<Bench<'p>> {
        let (len, collective) = (self.bytes() / size_of::<f64>(), self.collective());
        let lengths = |is_root| {
            let blocks = [
                collective.source_blocks(team.size(), is_root),
                collective.target_blocks(team.size(), is_root),
            ];
            blocks.map(|blocks| blocks as usize * len)
        };
        let [source_len, target_len] = lengths(team.rank() == Rank(0));
        let slice = |len: usize| RefCell::new(vec![1.5; len]);
        let [most_source, most_target] = lengths(true);
        let buffers = (0..count.max(1)).map(|_| {
            Ok(if self.symmetric() {
                Buffers::Symmetric(team.symmetric(most_source)?, team.symmetric(most_target)?)
            } else {
                Buffers::Slices(slice(source_len), slice(target_len))
            })
        });
        let buffers = buffers.collect::<Result<_>>()?;
        Ok(Bench { team, buffers, turn: Cell::new(0), contents: vec![1.5; source_len] })
    }

    /// Rewrites this PE's contribution to the next call.
    pub fn rewrite(&self, bench: &Bench<'_>) -> Result<()> {
        let rank = bench.team.rank();
        if !bench.contents.is_empty() {
            match bench.current() {
                Buffers::Symmetric(source, _) => source.put(rank, 0, &bench.contents)?,
                Buffers::Slices(source, _) => source.borrow_mut().fill(1.5),
            }
        }
        Ok(())
    }

    /// Makes one call.
    #[inline]
    pub fn call(&self, bench: &Bench<'_>, peers: &[Box<dyn Peer>]) -> Result<()> {
        let buffers = bench.current();
        bench.advance();
        match *self {
            Self::Consort { collective, sync, bytes, .. } => {
                let len = bytes / size_of::<f64>();
                let team = bench.team.with(sync);
                match buffers {
                    _ if collective == Collective::Barrier => team.barrier(),
                    Buffers::Symmetric(source, target) => {
                        team.collective_symmetric(collective, source, target, Sum, Rank(0))
                    }
                    Buffers::Slices(source, target) => {
                        let (source, mut target) = (source.borrow(), target.borrow_mut());
                        if sync.exit == SyncMode::None {
                            values::call(&team, collective, &source, &mut target, len)
                        } else {
                            team.collective_slice(collective, &source, &mut target, Sum, Rank(0))
                        }
                    }
                }
            }
            Self::Peer { index, collective, .. } => {
                let peer = &*peers[index];
                let rank = bench.team.rank().0;
                match buffers {
                    Buffers::Slices(source, target) if collective != Collective::Barrier => {
                        peer.collective(
                            collective,
                            rank,
                            0,
                            &source.borrow(),
                            &mut target.borrow_mut(),
                        );
                    }
                    _ => peer.barrier(rank),
                }
                Ok(())
            }
        }
    }
}
