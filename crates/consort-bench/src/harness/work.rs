//! The timed kinds of work: calls of Consort and of its peers, and operations between two PEs.

use std::cell::{Cell, RefCell};

use consort::{
    Rank, Result, Symmetric, Team,
    ops::Sum,
    sync_modes::SyncMode,
    tune::{Candidate, Collective, Query},
};

use serde::{Deserialize, Serialize};

use super::{
    point_to_point::{Pair, Pattern},
    values,
};
use crate::{
    peers::threads::Peer,
    query_json::{QueryJson, optional},
};

/// One kind of work, timed as a whole.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub enum Work {
    /// A call of a collective, on blocks of whole doubles, and the library that serves it.
    Call(#[serde(with = "QueryJson")] Query, ServedBy),
    /// Operations between two PEs, with messages of this many bytes.
    PointToPoint(Pattern, usize),
}

/// The library that serves a call.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub enum ServedBy {
    /// Consort, with an algorithm or with the one that it chooses.
    Consort(#[serde(with = "optional")] Option<Candidate>),
    /// A thread library, as an index into [`crate::peers::threads::peers`].
    Peer(usize),
}

/// One PE's memory for one work.
pub(super) enum WorkMemory {
    Call(CallMemory),
    PointToPoint(Pair),
}

/// One PE's buffers for calls, which are used in turn.
pub(super) struct CallMemory {
    team: Team,
    buffers: Vec<Buffers>,
    turn: Cell<usize>,
    /// The data for rewriting symmetric memory; empty if the buffers are slices.
    contents: Vec<f64>,
}

/// Source and target of one call. In symmetric memory, a broadcast's data is in the source.
enum Buffers {
    Slices(RefCell<Vec<f64>>, RefCell<Vec<f64>>),
    Symmetric(Symmetric<f64>, Symmetric<f64>),
}

impl CallMemory {
    #[inline]
    fn current(&self) -> &Buffers {
        &self.buffers[self.turn.get()]
    }

    #[inline]
    fn advance(&self) {
        let next = self.turn.get() + 1;
        self.turn.set(if next == self.buffers.len() { 0 } else { next });
    }
}

impl Work {
    /// Creates a call like `query`, served by `candidate`.
    pub fn of(query: &Query, candidate: &Candidate) -> Self {
        Self::Call(*query, ServedBy::Consort(Some(candidate.clone())))
    }

    /// Creates the same call by a thread library, whose buffers are slices.
    pub fn of_peer(query: &Query, index: usize) -> Self {
        Self::Call(Query { symmetric: false, ..*query }, ServedBy::Peer(index))
    }

    /// Returns the query for a collective's call.
    pub fn query(&self) -> Option<&Query> {
        match self {
            Self::Call(query, _) => Some(query),
            Self::PointToPoint(..) => None,
        }
    }

    /// Returns the collective and the algorithm of Consort, if one is named.
    pub fn candidate(&self) -> Option<(Collective, &Candidate)> {
        match self {
            Self::Call(query, ServedBy::Consort(Some(candidate))) => {
                Some((query.collective, candidate))
            }
            _ => None,
        }
    }

    /// Returns the number of bytes of a block, or of a message.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Call(query, _) => block_bytes(query),
            Self::PointToPoint(_, bytes) => *bytes,
        }
    }

    /// Returns whether both works can use the same buffers.
    pub fn shares(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Call(one, _), Self::Call(other, _)) => {
                let buffers = |&Query { collective, bytes, symmetric, .. }: &Query| {
                    (collective, bytes, symmetric)
                };
                buffers(one) == buffers(other)
            }
            _ => self == other,
        }
    }

    /// Returns the bytes of symmetric memory for a job of `pes` PEs, with `count` buffers in turn.
    pub(super) fn heap_bytes(&self, pes: u32, count: usize) -> usize {
        match self {
            Self::Call(Query { collective, .. }, _) => {
                let blocks =
                    collective.source_blocks(pes, true) + collective.target_blocks(pes, true);
                count * (blocks as usize * self.bytes() + 8192)
            }
            Self::PointToPoint(pattern, bytes) => pattern.heap_bytes(*bytes) + 8192,
        }
    }

    /// Allocates memory for this work on one PE, with `count` buffers in turn. Collective.
    pub(super) fn prepare(&self, team: &Team, count: usize) -> Result<WorkMemory> {
        Ok(match self {
            Self::Call(query, _) => WorkMemory::Call(buffers(query, team, count)?),
            Self::PointToPoint(pattern, bytes) => {
                WorkMemory::PointToPoint(pattern.prepare(team, *bytes)?)
            }
        })
    }

    /// Rewrites this PE's contribution to the next call.
    pub(super) fn rewrite(&self, bench: &WorkMemory) -> Result<()> {
        let WorkMemory::Call(bench) = bench else { return Ok(()) };
        match bench.current() {
            Buffers::Symmetric(source, _) if !bench.contents.is_empty() => {
                source.put(bench.team.rank(), 0, &bench.contents)?;
            }
            Buffers::Symmetric(..) => {}
            Buffers::Slices(source, _) => source.borrow_mut().fill(1.5),
        }
        Ok(())
    }

    #[inline]
    pub(super) fn call(&self, bench: &WorkMemory, peers: &[Box<dyn Peer>]) -> Result<()> {
        match (self, bench) {
            (Self::Call(query, by), WorkMemory::Call(bench)) => call(query, by, bench, peers),
            (Self::PointToPoint(pattern, _), WorkMemory::PointToPoint(pair)) => pair.call(*pattern),
            _ => unreachable!("the memory was prepared for another work"),
        }
    }
}

fn block_bytes(query: &Query) -> usize {
    usize::try_from(query.bytes).unwrap_or(usize::MAX)
}

/// Allocates buffers for calls on one PE, `count` of them in turn. Collective.
fn buffers(query: &Query, team: &Team, count: usize) -> Result<CallMemory> {
    let (len, collective) = (block_bytes(query) / size_of::<f64>(), query.collective);
    let lengths = |is_root| {
        let blocks = [
            collective.source_blocks(query.pes, is_root),
            collective.target_blocks(query.pes, is_root),
        ];
        blocks.map(|blocks| blocks as usize * len)
    };
    let [source_len, target_len] = lengths(team.rank() == Rank(0));
    let slice = |len: usize| RefCell::new(vec![1.5; len]);
    let [most_source, most_target] = lengths(true);
    let is_symmetric = query.symmetric && collective != Collective::Barrier;
    let buffers = (0..count.max(1)).map(|_| {
        Ok(if is_symmetric {
            Buffers::Symmetric(team.symmetric(most_source)?, team.symmetric(most_target)?)
        } else {
            Buffers::Slices(slice(source_len), slice(target_len))
        })
    });
    let buffers = buffers.collect::<Result<_>>()?;
    let contents = vec![1.5; if is_symmetric { source_len } else { 0 }];
    Ok(CallMemory { team: team.clone(), buffers, turn: Cell::new(0), contents })
}

#[inline]
fn call(query: &Query, by: &ServedBy, bench: &CallMemory, peers: &[Box<dyn Peer>]) -> Result<()> {
    let buffers = bench.current();
    bench.advance();
    let Query { collective, sync, .. } = *query;
    match by {
        ServedBy::Consort(_) => {
            let len = block_bytes(query) / size_of::<f64>();
            let team = bench.team.with_sync(sync);
            match buffers {
                _ if collective == Collective::Barrier => team.barrier(),
                Buffers::Symmetric(data, _) if collective == Collective::Broadcast => {
                    team.in_symmetric(data, data).broadcast(Rank(0))
                }
                Buffers::Symmetric(source, target) => {
                    team.in_symmetric(source, target).any(collective, Sum, Rank(0))
                }
                Buffers::Slices(source, target) => {
                    let (source, mut target) = (source.borrow(), target.borrow_mut());
                    if sync.exit == SyncMode::None {
                        values::call(&team, collective, &source, &mut target, len)
                    } else {
                        team.slices(&source, &mut target).any(collective, Sum, Rank(0))
                    }
                }
            }
        }
        ServedBy::Peer(index) => {
            let peer = &*peers[*index];
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
