//! Broadcasts down a tree: `flat`, `knomial` and `pipelined`.
//!
//! Idea: every PE that has the message forwards it. In a k-nomial tree, the number of PEs with the
//! message grows by a factor of `k` in each round (Nishtala and Yelick 2009, section 2.2). In a
//! k-ary tree, a PE forwards chunk `i` while chunk `i + 1` arrives, so that all levels of the tree
//! work at once (Petrović 2015, section 3.1.1).
//!
//! Protocol, for each chunk: receive it from the parent into the target; send it to each child
//! (`protocols/stream`). A PE sends to its last child first, because in a k-nomial tree this child
//! has the largest subtree.
//!
//! Cost: `P - 1` messages, and the depth of the tree on the critical path. With chunks, the first
//! chunk travels the depth of the tree, which fills the pipeline; then each PE sends the whole
//! message `k` times.

use std::marker::PhantomData;

use consort_fabric::{
    Candidate, Channel, MachineModel, Messages, Op, Query, Rank, Span, SyncModes,
};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    protocols::stream::{Chunks, Edge},
    rank_math::tree::Shape,
    setting::Exchange,
    trees::{self, Tree},
};

/// A broadcast down a tree.
#[derive(Debug)]
pub struct DownTree<T>(PhantomData<T>);

/// The root sends to every PE.
pub type Flat = DownTree<trees::Flat>;
/// A broadcast down a k-nomial tree.
pub type Knomial = DownTree<trees::Knomial>;
/// A broadcast down a k-ary tree, in chunks.
pub type Pipelined = DownTree<trees::Pipelined>;

/// The schedule of a PE that handles one message only. It needs no loops.
#[derive(Hash)]
enum SingleMessage {
    /// A root with one child sends its data.
    Sends(Rank, Channel),
    /// A leaf receives the data.
    Receives(Channel),
}

/// One PE's schedule: its neighbours in the tree, and the chunks of the message.
#[derive(Hash)]
pub struct Schedule {
    only: Option<SingleMessage>,
    exchange: Option<Exchange>,
    chunks: Chunks,
    parent: Option<Edge>,
    children: Box<[Edge]>,
}

impl Schedule {
    /// Returns the schedule, or `None` if the inbox is too small.
    pub(crate) fn new(setting: &Setting, shape: Shape, chunk_bytes: usize) -> Option<Self> {
        // Channels: `fan` for the children's signals that they have taken a chunk, then the buffers
        // of one edge.
        let fan = shape.fan(setting.call.pes);
        let room = setting.lines().checked_sub(fan)?;
        let chunks = Chunks::new(setting.call.bytes, 1, chunk_bytes, room)?;
        let node = shape.node(setting.rank, setting.call.root, setting.call.pes);
        let edge =
            |peer, index| Edge { peer, data: setting.channel(fan), taken: setting.channel(index) };
        let parent = node.parent.map(|(parent, index)| edge(parent, index));
        let children: Box<[Edge]> =
            (0..fan).zip(node.children).map(|(i, child)| edge(child, i)).rev().collect();
        let exchange = setting.exchange().filter(|_| chunks.count() == 1);
        let only = match (&parent, &*children) {
            _ if chunks.count() > 1 || exchange.is_some() => None,
            (None, [child]) => Some(SingleMessage::Sends(child.peer, child.data)),
            (Some(parent), []) => Some(SingleMessage::Receives(parent.data)),
            _ => None,
        };
        Some(Self { only, exchange, chunks, parent, children })
    }

    pub(crate) const fn chunks(&self) -> Chunks {
        self.chunks
    }

    /// Moves one chunk through this PE. At the root, `own` is the chunk.
    #[inline(always)]
    pub(crate) async fn chunk<F: Messages>(&self, f: &F, index: u32, own: Span) -> Op {
        let Self { chunks, parent, children, .. } = self;
        let (at, bytes) = chunks.range(index);
        let mut chunk = own;
        if let Some(parent) = parent {
            chunk = Span::target(at, bytes);
            f.receive(parent.buffer(chunks, index), index, chunk).await?;
            if chunks.is_awaited(index) {
                f.signal(parent.peer, parent.taken, index).await?;
            }
        }
        for child in children {
            if let Some(earlier) = chunks.awaits(index) {
                f.wait(child.taken, earlier).await?;
            }
            f.send(child.peer, child.buffer(chunks, index), index, chunk).await?;
        }
        Ok(())
    }

    /// Runs the protocol. It is compiled once for all trees.
    #[inline(always)]
    async fn run<F: Messages>(&self, f: &F) -> Op {
        let Schedule { only, exchange, chunks, .. } = self;
        if let Some(only) = only {
            let (at, bytes) = chunks.range(0);
            return match only {
                SingleMessage::Sends(peer, channel) => {
                    f.send(*peer, *channel, 0, Span::source(at, bytes)).await
                }
                SingleMessage::Receives(channel) => {
                    f.receive(*channel, 0, Span::target(at, bytes)).await
                }
            };
        }
        if let Some(Exchange { peer, channel, is_root }) = *exchange {
            let (at, bytes) = chunks.range(0);
            let own = is_root.then(|| Span::source(at, bytes));
            let target = (!is_root).then(|| Span::target(at, bytes));
            return f.pairwise_exchange(peer, channel, 0, own, target).await;
        }
        for index in 0..chunks.count() {
            let (at, bytes) = chunks.range(index);
            self.chunk(f, index, Span::source(at, bytes)).await?;
        }
        Ok(())
    }
}

/// Returns the model's estimate for a broadcast over a tree, in nanoseconds.
pub(crate) fn cost_ns(
    shape: Shape,
    chunk_bytes: usize,
    query: &Query,
    model: &MachineModel,
) -> f64 {
    let (bytes, fan) = (query.bytes as f64, f64::from(shape.fan(query.pes)));
    let chunk = bytes.min(chunk_bytes as f64);
    let hop = model.hops_ns(1.0, query.pes) + model.later_lines_ns(chunk);
    let pass = model.lines_ns(bytes) * fan.max(1.0);
    let depth = f64::from(shape.depth(query.pes));
    // In a k-ary tree, the last child of each node waits for its siblings. In a k-nomial tree, only
    // the root causes this delay, because a last child has no children.
    let siblings = if matches!(shape, Shape::Kary(_)) { fan - 1.0 } else { 0.0 };
    let queue = (depth - 1.0).max(0.0) * siblings * model.lines_ns(chunk);
    if model.is_shared(query.pes) {
        // The work of all PEs is done one after the other, and two chunks fill the buffers.
        let work = pass * model.pes_a_core(query.pes);
        let turns = (bytes / chunk.max(1.0) / 2.0).floor();
        return work + (depth + turns) * model.hops_ns(1.0, query.pes);
    }
    if query.sync == SyncModes::LOOSE {
        let first = model.streamed_ns(bytes);
        first.max(pass) + fan * (first / 4.0 + model.overhead_ns)
    } else {
        depth * hop + queue + pass + fan * model.overhead_ns
    }
}

impl<T: Tree> Algorithm for DownTree<T> {
    const NAME: &'static str = T::NAME;
    const DIRECTION: Direction = Direction::Down;
    const PARAMETERS: &'static [Parameter] = T::PARAMETERS;
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check(candidate)?;
        let (shape, chunk_bytes) = T::of(candidate);
        Schedule::new(setting, shape, chunk_bytes).ok_or(Self::incapable("the inbox is too small"))
    }

    fn steps(schedule: &Schedule) -> u64 {
        u64::from(schedule.chunks.count())
    }

    fn synchronizes(schedule: &Schedule) -> bool {
        schedule.exchange.is_some()
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (shape, chunk_bytes) = T::of(candidate);
        cost_ns(shape, chunk_bytes, query, model)
    }

    #[inline(always)]
    fn run<F: Messages>(f: &F, schedule: &Schedule) -> impl Future<Output = Op> {
        schedule.run(f)
    }
}
