//! Relays: one block per PE goes through message buffers, up or down a k-ary tree. Used by scatter
//! and gather in OC-BCAST's scheme. OC-BCAST, the broadcast, divides its message by `divided` too.
//!
//! In OC-BCAST chunks go from message buffer to message buffer, and a buffer holds two chunks
//! (Petrović 2015, section 3.1). Here each chunk belongs to one PE, and passes only through the PEs
//! between that PE and the root. A PE orders the PEs below it level by level. If it leaves out all
//! but the PEs below one child, it gets that child's order. So all PEs identify chunks by counting.

use consort_fabric::{CallSpec, Candidate, MachineModel, Query, Rank, Span, Step};

use crate::{Algorithm, Parameter, PlanError, Setting, rank_math::tree::Shape};

/// The parameters of algorithms in OC-BCAST's scheme.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "chunk_bytes", values: &[3072, 8192, 32768], range: (1, 1 << 30) },
    Parameter { name: "k", values: &[1, 2, 7, 47], range: (1, 65535) },
];

const TOO_MANY: &str = "there are more chunks than can be counted";

/// Returns the tree, the bytes of a chunk, and the number of chunks of a block.
///
/// # Errors
/// If a parameter is missing or out of range, or does not suit the call.
pub(crate) fn divided<A: Algorithm>(
    setting: &Setting,
    candidate: &Candidate,
) -> Result<(Shape, usize, Step), PlanError> {
    let chunk = usize::try_from(A::parameter(candidate, 0)?).unwrap_or(usize::MAX);
    let k = u32::try_from(A::parameter(candidate, 1)?).unwrap_or(u32::MAX);
    let CallSpec { pes, bytes, .. } = setting.call;
    let (most, buffer) = ((pes - 1).max(1), setting.capabilities.buffer_bytes);
    if k > most {
        return Err(A::incapable(format!("k is {k}, but {pes} PEs allow at most {most}")));
    }
    if chunk > buffer / 2 {
        let why = format!("two chunks of {chunk} B do not fit the message buffer, {buffer} B");
        return Err(A::incapable(why));
    }
    if setting.lines() <= k {
        return Err(A::incapable("the inbox is too small"));
    }
    let chunks =
        Step::try_from(bytes.div_ceil(chunk).max(1)).map_err(|_| A::incapable(TOO_MANY))?;
    Ok((Shape::Kary(k), chunk, chunks))
}

/// The division of blocks into chunks, the tree, and a PE's neighbours in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relay {
    /// Bytes of a block.
    pub bytes: usize,
    /// Bytes of a chunk.
    chunk: usize,
    /// Chunks of a block.
    pub chunks: Step,
    /// An upper bound of the chunk numbers, exclusive.
    steps: Step,
    /// The parent, and this PE's index among its children; `None` at the root.
    pub parent: Option<(Rank, u32)>,
    /// The PEs below this one, level by level, each with the child on the route to it.
    pub below: Vec<(Rank, Child)>,
    /// The PEs below the parent, each with the parent's child; empty at the root.
    pub below_parent: Vec<(Rank, Child)>,
}

/// A child and its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Child {
    /// Its rank.
    pub rank: Rank,
    /// Its index among its siblings.
    pub index: u32,
}

impl Relay {
    /// Creates the relay for a setting's blocks.
    ///
    /// # Errors
    /// If the blocks cannot be relayed.
    pub fn new<A: Algorithm>(setting: &Setting, candidate: &Candidate) -> Result<Self, PlanError> {
        let Setting { rank, call: CallSpec { root, pes, bytes, .. }, .. } = *setting;
        let (shape, chunk, chunks) = divided::<A>(setting, candidate)?;
        let steps = chunks.checked_mul(pes).ok_or(A::incapable(TOO_MANY))?;
        let parent = shape.node(rank, root, pes).parent;
        let below = |rank| below(shape, rank, root, pes);
        let below_parent = parent.map_or_else(Vec::new, |(parent, _)| below(parent));
        let below = below(rank);
        Ok(Self { bytes, chunk, chunks, steps, parent, below, below_parent })
    }

    /// Returns the number of steps of a call.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps.into()
    }

    /// Returns the chunks of a block: index, offset and length in bytes.
    #[inline(always)]
    pub fn pieces(&self) -> impl Iterator<Item = (Step, usize, usize)> {
        let (bytes, chunk) = (self.bytes, self.chunk);
        let starts = (0..self.chunks).map(move |index| (index, index as usize * chunk));
        starts.map(move |(index, at)| (index, at, chunk.min(bytes - at)))
    }

    /// Returns the span in a message buffer of chunk `number` of those that go through it.
    #[inline(always)]
    #[must_use]
    pub const fn buffer(&self, number: Step, bytes: usize) -> Span {
        Span::buffer(number as usize % 2 * self.chunk, bytes)
    }
}

/// Returns the PEs below `rank`, level by level, each with the child on the route to it.
fn below(shape: Shape, rank: Rank, root: Rank, pes: u32) -> Vec<(Rank, Child)> {
    let children = shape.children_of(rank, root, pes);
    let of_child = |(index, rank)| (rank, Child { rank, index });
    let mut all: Vec<_> = (0..).zip(children).map(of_child).collect();
    let mut next = 0;
    while let Some(&(node, child)) = all.get(next) {
        let under = shape.children_of(node, root, pes).into_iter();
        all.extend(under.map(|under| (under, child)));
        next += 1;
    }
    all
}

/// Returns the model's estimate for a relay, in nanoseconds.
#[must_use]
pub fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
    let k = candidate.parameter("k").and_then(|k| u32::try_from(k).ok()).unwrap_or(7);
    let bytes = query.bytes as f64;
    let chunk = bytes.min(candidate.parameter("chunk_bytes").unwrap_or(3072) as f64);
    // All blocks but the root's own pass through the root.
    let blocks = f64::from(query.pes) - 1.0;
    let chunks = (bytes / chunk.max(1.0)).ceil().max(1.0) * blocks;
    let (get, copy) = (model.pulled_ns(chunk, 1.0), chunk / model.copy_gbps);
    let hop = model.hops_ns(1.0, query.pes);
    let depth = f64::from(Shape::Kary(k).depth(query.pes));
    if model.is_shared(query.pes) {
        // The work of all PEs is done one after the other, and two chunks fill the buffers.
        let work = depth * chunks * (get + model.overhead_ns) / f64::from(model.cores.max(1));
        return work + (depth + (chunks / 2.0).floor()) * hop;
    }
    // The place of a chunk is free again when a PE has been signalled, has got the chunk, and has
    // signalled back.
    let turn = (get.max(copy) + model.overhead_ns).max((get + copy + 2.0 * hop) / 2.0);
    copy + depth * (hop + get) + (chunks - 1.0).max(0.0) * turn + hop
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtree_keeps_the_order_of_the_whole() {
        for k in [1, 2, 3, 7, 47] {
            for pes in (1..30).chain([48]) {
                for root in [0, pes / 2, pes - 1].map(Rank) {
                    let shape = Shape::Kary(k);
                    assert_eq!(below(shape, root, root, pes).len(), pes as usize - 1);
                    for rank in (0..pes).map(Rank) {
                        let all = below(shape, rank, root, pes);
                        for (child, index) in
                            shape.children_of(rank, root, pes).into_iter().zip(0..)
                        {
                            let child = Child { rank: child, index };
                            let under =
                                all.iter().filter(|(_, by)| *by == child).map(|(pe, _)| *pe);
                            let below = below(shape, child.rank, root, pes).into_iter();
                            let own = std::iter::once(child.rank);
                            assert!(under.eq(own.chain(below.map(|(pe, _)| pe))), "{k} {pes}");
                        }
                    }
                }
            }
        }
    }
}
