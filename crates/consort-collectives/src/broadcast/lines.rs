//! Chunks of lines down a tree: what the broadcasts over trees have in common.
//!
//! Protocol, for each chunk: receive it from the parent into the target; send it on to each child
//! (Nishtala and Yelick 2009, section 2.2, for the trees; double buffering as in
//! `patterns/stream`). The largest subtree is served first.

use consort_fabric::{Fabric, MachineModel, Op, Query, Rank, Slot, Span, Sync};

use crate::{
    Setting,
    patterns::{
        stream::{Chunks, Edge},
        tree::Shape,
    },
};

/// One message is all that this PE has to do with: no loops then.
#[derive(Debug)]
enum Only {
    /// A root with one child sends what it has.
    Sends(Rank, Slot),
    /// A leaf takes what comes.
    Receives(Slot),
}

/// Where a PE stands in the tree, and how the message is divided.
#[derive(Debug)]
pub struct Schedule {
    only: Option<Only>,
    chunks: Chunks,
    parent: Option<Edge>,
    children: Box<[Edge]>,
}

impl Schedule {
    /// `None` if the inbox is too small.
    pub(super) fn new(setting: &Setting, shape: Shape, chunk_bytes: usize) -> Option<Self> {
        // Slots: `fan` for the children's words that chunks are taken, then one edge's buffers.
        let fan = shape.fan(setting.pes);
        let room = setting.lines().checked_sub(fan)?;
        let chunks = Chunks::new(setting.bytes, 1, chunk_bytes, room)?;
        let node = shape.node(setting.rank, setting.root, setting.pes);
        let edge = |peer, index| Edge { peer, data: setting.slot(fan), taken: setting.slot(index) };
        let parent = node.parent.map(|(parent, index)| edge(parent, index));
        let children: Box<[Edge]> =
            (0..fan).zip(node.children).map(|(i, child)| edge(child, i)).rev().collect();
        let only = match (&parent, &*children) {
            _ if chunks.count() > 1 => None,
            (None, [child]) => Some(Only::Sends(child.peer, child.data)),
            (Some(parent), []) => Some(Only::Receives(parent.data)),
            _ => None,
        };
        Some(Self { only, chunks, parent, children })
    }

    /// Steps of a call.
    pub(super) fn steps(&self) -> u64 {
        u64::from(self.chunks.count())
    }
}

/// What a broadcast over a tree costs by the model.
pub(super) fn cost_ns(
    shape: Shape,
    chunk_bytes: usize,
    query: &Query,
    model: &MachineModel,
) -> f64 {
    let (bytes, fan) = (query.bytes as f64, f64::from(shape.fan(query.pes)));
    let chunk = bytes.min(chunk_bytes as f64);
    let lines = |bytes: f64| (bytes / 56.0).ceil().max(1.0);
    let hop = model.hops_ns(1.0, query.pes) + (lines(chunk) - 1.0) * model.next_line_ns;
    let pass = lines(bytes) * model.next_line_ns * fan.max(1.0);
    let depth = f64::from(shape.depth(query.pes));
    // In a k-ary tree the last child of each node waits for its siblings; in a k-nomial one it
    // waits at the root alone, for it has no children of its own.
    let siblings = if matches!(shape, Shape::Kary(_)) { fan - 1.0 } else { 0.0 };
    let queue = (depth - 1.0).max(0.0) * siblings * lines(chunk) * model.next_line_ns;
    if query.pes > model.cores {
        // Every PE's work is done one after the other, and two chunks fill the buffers.
        let work = pass * f64::from(query.pes) / f64::from(model.cores.max(1));
        let turns = (bytes / chunk.max(1.0) / 2.0).floor();
        return work + (depth + turns) * model.hops_ns(1.0, query.pes);
    }
    if query.sync == Sync::LOOSE {
        let first = model.streamed_ns(bytes);
        first.max(pass) + fan * (first / 4.0 + model.overhead_ns)
    } else {
        depth * hop + queue + pass + fan * model.overhead_ns
    }
}

/// The protocol.
#[inline(always)]
pub(super) async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
    let Schedule { only, chunks, parent, children } = schedule;
    if let Some(only) = only {
        let (at, bytes) = chunks.range(0);
        return match only {
            Only::Sends(peer, slot) => f.send(*peer, *slot, 0, Span::source(at, bytes)).await,
            Only::Receives(slot) => f.receive(*slot, 0, Span::target(at, bytes)).await,
        };
    }
    for index in 0..chunks.count() {
        let (at, bytes) = chunks.range(index);
        let mut chunk = Span::source(at, bytes);
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
    }
    Ok(())
}
