//! Reductions up a tree: `flat`, `chain`, `knomial` and `pipelined`.
//!
//! Idea: a PE combines the results of its children's subtrees with its own contribution, the
//! smallest subtree first, and sends the result to its parent (Nishtala and Yelick 2009, sections
//! 2.2 and 4.1). Along a chain all PEs work at once, chunk by chunk, and no PE has more than one
//! child. So a chain is the best tree for successive Loose reductions.
//!
//! Protocol, for each chunk: combine the data of the children before this PE, this PE's
//! contribution, and the data of the children after it, in this order; send the result to the
//! parent, or keep it at the root (`protocols/stream`).
//!
//! **Order.** A subtree of a k-nomial tree is a range of ranks relative to its root. If the
//! operator is not commutative and the root is not PE 0, the tree is rooted at PE 0, which then
//! sends the result to the root. The root waits for each chunk of the result before it continues,
//! so chunks do not follow each other closely. A flat tree, and therefore any tree of two PEs,
//! keeps the order with any root.
//!
//! Cost: `P - 1` messages. Combinations at the root: `(k - 1) log_k P`; `P - 1` in a flat tree. In
//! a chain, `P - 1` chunks fill the pipeline, and then one message passes.

use std::marker::PhantomData;

use consort_fabric::{
    CallSpec, Candidate, Channel, MachineModel, Messages, Op, OperatorClass, Query, Rank, Span,
    SyncModes,
};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    protocols::stream::{Chunks, Edge},
    rank_math::tree::Shape,
    setting::Exchange,
    trees::{self, Tree},
};

/// A reduction up a tree.
#[derive(Debug)]
pub struct UpTree<T>(PhantomData<T>);

/// All PEs send to the root.
pub type Flat = UpTree<trees::Flat>;
/// A reduction along a pipelined chain.
pub type Chain = UpTree<trees::Chain>;
/// A reduction up a k-nomial tree.
pub type Knomial = UpTree<trees::Knomial>;
/// A reduction up a k-nomial tree, in chunks.
pub type Pipelined = UpTree<trees::PipelinedKnomial>;

/// An operand of the combination.
#[derive(Hash)]
enum Input {
    Own,
    Child(Edge),
}

/// The schedule of a PE that handles one message only. It needs no loops.
#[derive(Hash)]
enum SingleMessage {
    /// A leaf sends its contribution.
    Sends(Rank, Channel),
    /// A root with one child combines its contribution with the child's.
    Combines(Channel),
}

/// One PE's schedule: its neighbours in the tree, and the chunks of the message.
#[derive(Hash)]
pub struct Schedule {
    only: Option<SingleMessage>,
    exchange: Option<Exchange>,
    chunks: Chunks,
    inputs: Box<[Input]>,
    parent: Option<Edge>,
    /// The edge from the tree's root to the call's root, if these differ.
    result: Option<Edge>,
    /// Whether this PE's combination is the result and stays here.
    keeps: bool,
}

/// Moves one chunk through a PE. This is not a future, so that a call of one chunk has no future
/// around it: between two PEs that would take about 60 more instructions.
macro_rules! pass {
    ($schedule:expr, $f:expr, $index:expr) => {
        let Schedule { chunks, inputs, parent, result, keeps, .. } = $schedule;
        let (at, bytes) = chunks.range($index);
        let sum = if *keeps { Span::target(at, bytes) } else { Span::accumulator(bytes) };
        let mut so_far = None;
        for input in inputs {
            match (input, so_far) {
                (Input::Own, None) => so_far = Some(Span::source(at, bytes)),
                (Input::Own, Some(left)) => {
                    $f.combine(sum, left, Span::source(at, bytes)).await?;
                }
                (Input::Child(child), left) => {
                    let channel = child.buffer(chunks, $index);
                    match left {
                        None => $f.receive(channel, $index, sum).await?,
                        Some(left) => $f.receive_combine(channel, $index, left, sum).await?,
                    }
                    so_far = Some(sum);
                    if chunks.is_awaited($index) {
                        $f.signal(child.peer, child.taken, $index).await?;
                    }
                }
            }
        }
        let combined = so_far.unwrap_or(sum);
        if let Some(parent) = parent {
            if let Some(earlier) = chunks.awaits($index) {
                $f.wait(parent.taken, earlier).await?;
            }
            $f.send(parent.peer, parent.buffer(chunks, $index), $index, combined).await?;
        } else if combined != sum {
            $f.copy(sum, combined).await?;
        }
        if let Some(result) = result {
            $f.receive(result.buffer(chunks, $index), $index, Span::target(at, bytes)).await?;
            if chunks.is_awaited($index) {
                $f.signal(result.peer, result.taken, $index).await?;
            }
        }
    };
}

impl Schedule {
    /// Returns the schedule, or `None` if the inbox or the scratch memory is too small.
    pub(crate) fn new(setting: &Setting, shape: Shape, chunk_bytes: usize) -> Option<Self> {
        let Setting { rank, call: CallSpec { root, pes, .. }, .. } = *setting;
        let ordered = setting.call.class == OperatorClass::Ordered;
        // A flat tree keeps the order whatever its root, and all trees of two PEs are flat.
        let is_flat = shape == Shape::Flat || pes == 2;
        let top = if ordered && !is_flat { Rank(0) } else { root };
        let fan = shape.fan(pes);
        // Channels: one for the parent's signals that a chunk is taken, the buffers of each child,
        // and those of the result, which arrives like the data of another child.
        let room = setting.lines().checked_sub(1)? / (fan + 1);
        let chunks =
            Chunks::new(setting.call.bytes, setting.call.element_bytes, chunk_bytes, room)?;
        if chunks.chunk_bytes() > setting.capabilities.scratch_bytes {
            return None;
        }
        let edge = |peer, index| Edge {
            peer,
            data: setting.channel(1 + index * chunks.lines_per_edge()),
            taken: setting.channel(0),
        };
        let node = shape.node(rank, top, pes);
        let children = (0..).zip(node.children).map(|(index, child)| edge(child, index));
        let mut inputs: Vec<_> = children.map(Input::Child).collect();
        inputs.insert(0, Input::Own);
        if is_flat {
            inputs.sort_by_key(|input| match input {
                Input::Own => rank,
                Input::Child(child) => child.peer,
            });
        }
        let mut parent = node.parent.map(|(parent, index)| edge(parent, index));
        let mut result = None;
        if top != root {
            if rank == top {
                parent = Some(edge(root, fan));
            } else if rank == root {
                result = Some(edge(top, fan));
            }
        }
        let keeps = rank == root && result.is_none();
        let exchange = setting.exchange().filter(|_| chunks.count() == 1);
        let only = match (inputs.as_slice(), parent) {
            _ if chunks.count() > 1 || result.is_some() || exchange.is_some() => None,
            ([Input::Own], Some(parent)) => Some(SingleMessage::Sends(parent.peer, parent.data)),
            ([Input::Own, Input::Child(child)], None) if keeps => {
                Some(SingleMessage::Combines(child.data))
            }
            _ => None,
        };
        Some(Self { only, exchange, chunks, inputs: inputs.into(), parent, keeps, result })
    }

    pub(crate) const fn chunks(&self) -> Chunks {
        self.chunks
    }

    /// Moves one chunk through this PE.
    #[inline(always)]
    pub(crate) async fn chunk<F: Messages>(&self, f: &F, index: u32) -> Op {
        pass!(self, f, index);
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
                SingleMessage::Combines(channel) => {
                    f.receive_combine(*channel, 0, Span::source(at, bytes), Span::target(at, bytes))
                        .await
                }
            };
        }
        if let Some(Exchange { peer, channel, is_root }) = *exchange {
            let (at, bytes) = chunks.range(0);
            let (own, message) = (Span::source(at, bytes), Span::incoming(bytes));
            if !is_root {
                return f.pairwise_exchange(peer, channel, 0, Some(own), None).await;
            }
            f.pairwise_exchange(peer, channel, 0, None, Some(message)).await?;
            let (left, right) = if f.rank() < peer { (own, message) } else { (message, own) };
            return f.combine(Span::target(at, bytes), left, right).await;
        }
        for index in 0..chunks.count() {
            pass!(self, f, index);
        }
        Ok(())
    }
}

/// Returns the model's estimate for a reduction over a tree, in nanoseconds.
pub(crate) fn cost_ns(
    shape: Shape,
    chunk_bytes: usize,
    query: &Query,
    model: &MachineModel,
) -> f64 {
    let (bytes, fan) = (query.bytes as f64, f64::from(shape.fan(query.pes)));
    let chunk = bytes.min(chunk_bytes as f64);
    let hop = model.hops_ns(1.0, query.pes) + model.later_lines_ns(chunk) + chunk / model.copy_gbps;
    let pass = (model.lines_ns(bytes) + bytes / model.copy_gbps) * fan.max(1.0);
    let depth = f64::from(shape.depth(query.pes));
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
        depth * hop + pass + fan * model.overhead_ns
    }
}

impl<T: Tree> Algorithm for UpTree<T> {
    const NAME: &'static str = T::NAME;
    const DIRECTION: Direction = Direction::Up;
    const PARAMETERS: &'static [Parameter] = T::PARAMETERS;
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check(candidate)?;
        let (shape, chunk_bytes) = T::of(candidate);
        let why = "the inbox or the scratch memory is too small";
        Schedule::new(setting, shape, chunk_bytes).ok_or(Self::incapable(why))
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
