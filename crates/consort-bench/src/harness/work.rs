//! The kinds of work that are timed: calls of Consort and of its peers.

use std::cell::{Cell, RefCell};

use consort::{Candidate, Collective, Query, Rank, Result, Sum, Symmetric, SyncMode, Team};

use serde::{Deserialize, Serialize};

use super::values;
use crate::{
    asked::{Asked, optional},
    peers::threads::Peer,
};

/// One kind of work, timed as a whole.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Work {
    /// The call, on blocks of whole doubles.
    #[serde(with = "Asked")]
    pub query: Query,
    /// The library that serves it.
    pub by: By,
}

/// The library that serves a call.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub enum By {
    /// Consort, with an algorithm, or with the one that it chooses.
    Consort(#[serde(with = "optional")] Option<Candidate>),
    /// A thread library, as an index into [`crate::peers::threads::peers`].
    Peer(usize),
}

/// One PE's buffers for one work, which are used in turn.
pub struct Bench<'p> {
    team: Team<'p>,
    buffers: Vec<Buffers<'p>>,
    turn: Cell<usize>,
    /// The data for rewriting symmetric memory; empty where the buffers are slices.
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
        Self { query: *query, by: By::Consort(Some(candidate.clone())) }
    }

    /// The same call by a thread library, whose buffers are slices.
    pub fn of_peer(query: &Query, index: usize) -> Self {
        Self { query: Query { symmetric: false, ..*query }, by: By::Peer(index) }
    }

    /// Bytes of a block.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.query.bytes).unwrap_or(usize::MAX)
    }

    /// Whether both works can use the same buffers.
    pub fn shares(&self, other: &Self) -> bool {
        let buffers = |work: &Self| {
            let Query { collective, bytes, symmetric, .. } = work.query;
            (collective, bytes, symmetric)
        };
        buffers(self) == buffers(other)
    }

    /// Buffers for this work on one PE, `count` of them in turn. Collective.
    pub fn prepare<'p>(&self, team: Team<'p>, count: usize) -> Result<Bench<'p>> {
        let (len, collective) = (self.bytes() / size_of::<f64>(), self.query.collective);
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
        let is_symmetric = self.query.symmetric && collective != Collective::Barrier;
        let buffers = (0..count.max(1)).map(|_| {
            Ok(if is_symmetric {
                Buffers::Symmetric(team.symmetric(most_source)?, team.symmetric(most_target)?)
            } else {
                Buffers::Slices(slice(source_len), slice(target_len))
            })
        });
        let buffers = buffers.collect::<Result<_>>()?;
        let contents = vec![1.5; if is_symmetric { source_len } else { 0 }];
        Ok(Bench { team, buffers, turn: Cell::new(0), contents })
    }

    /// Rewrites this PE's contribution to the next call.
    pub fn rewrite(&self, bench: &Bench<'_>) -> Result<()> {
        match bench.current() {
            Buffers::Symmetric(source, _) if !bench.contents.is_empty() => {
                source.put(bench.team.rank(), 0, &bench.contents)?;
            }
            Buffers::Symmetric(..) => {}
            Buffers::Slices(source, _) => source.borrow_mut().fill(1.5),
        }
        Ok(())
    }

    /// Makes one call.
    #[inline]
    pub fn call(&self, bench: &Bench<'_>, peers: &[Box<dyn Peer>]) -> Result<()> {
        let buffers = bench.current();
        bench.advance();
        let Query { collective, sync, .. } = self.query;
        match self.by {
            By::Consort(_) => {
                let len = self.bytes() / size_of::<f64>();
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
            By::Peer(index) => {
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
