//! Gathers up a tree: `flat` and `knomial`. A PE sends the blocks of its subtree to its parent.
//!
//! Source: Nishtala and Yelick 2009, section 2.2, for the trees; the reverse of the scatter
//! `knomial`. Radix 1 is the chain.
//!
//! Protocol (`protocols/exchange`): copy this PE's block into scratch memory; receive the blocks of
//! each child's subtree next to it, the smallest subtree first; send all these blocks to the
//! parent. The root receives blocks in its target, and a leaf sends its block from its source.
//!
//! Cost: the depth of the tree in transfers. The root receives `P - 1` blocks in few messages. The
//! blocks that a PE forwards must fit its scratch memory.

use std::{marker::PhantomData, ops::Range};

use consort_fabric::{CallSpec, Candidate, MachineModel, Messages, Op, Place, Query, Span};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    protocols::exchange::{Buffers, OnReceive, Round, Rounds},
    rank_math::{
        subtree::{self, Subtree},
        tree::Shape,
    },
    trees::{self, Tree},
};

/// A gather up a tree.
#[derive(Debug)]
pub struct UpTree<T>(PhantomData<T>);

/// All PEs send to the root.
pub type Flat = UpTree<trees::Flat>;
/// A gather up a k-nomial tree.
pub type Knomial = UpTree<trees::KnomialOfBlocks>;

fn rounds(setting: &Setting, shape: Shape) -> Option<Rounds> {
    let Setting { rank, call: CallSpec { root, pes, bytes, .. }, .. } = *setting;
    let subtree = Subtree::of(rank, root, pes, shape);
    let (fan, largest) = (shape.fan(pes), subtree::largest(pes, shape));
    // The blocks of several PEs may wrap around at the last rank, which makes two spans.
    let spans = if largest > 1 { 2 } else { 1 };
    let longest = largest as usize * bytes;
    let buffers = Buffers::new(setting, fan, longest, spans, 1)?;
    (largest <= 1 || longest <= setting.capabilities.scratch_bytes).then_some(())?;
    let (own, is_leaf) = (Span::source(0, bytes), subtree.children.is_empty());
    let place = if rank == root { Place::Target } else { Place::Accumulator };
    // Returns the first chunk number of each child, the smallest subtree first.
    let firsts = |children: &[(_, Range<u32>)]| -> Vec<u32> {
        let chunks = children.iter().map(|(_, nodes)| buffers.chunks(nodes.len() * bytes));
        chunks.scan(0, |next, chunks| Some(std::mem::replace(next, *next + chunks))).collect()
    };
    let mut all = Vec::new();
    for (first, (peer, nodes)) in firsts(&subtree.children).into_iter().zip(&subtree.children) {
        let spans = subtree.blocks(setting, nodes.clone(), place);
        all.push(Round::at(first, 0).receive(*peer, spans, OnReceive::Stores));
    }
    if !is_leaf || rank == root {
        let node = subtree.nodes.start;
        let target = subtree.blocks(setting, node..node + 1, place)[0];
        Round::copy_first(&mut all, target, own);
    }
    if let Some((peer, index)) = subtree.parent {
        let siblings = Subtree::of(peer, root, pes, shape).children;
        let spans =
            if is_leaf { vec![own] } else { subtree.blocks(setting, subtree.nodes.clone(), place) };
        let first = firsts(&siblings)[index as usize];
        all.push(Round::at(first, 0).send(peer, spans));
    }
    Some(Rounds::new(setting, &buffers, all))
}

impl<T: Tree> Algorithm for UpTree<T> {
    const NAME: &'static str = T::NAME;
    const DIRECTION: Direction = Direction::Up;
    const ROOT_ACCESS_IS_UNORDERED: bool = true;
    const PARAMETERS: &'static [Parameter] = T::PARAMETERS;
    type Schedule = Rounds;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Rounds, PlanError> {
        Self::check(candidate)?;
        let why = "the inbox or the scratch memory is too small";
        rounds(setting, T::of(candidate).0).ok_or(Self::incapable(why))
    }

    fn steps(rounds: &Rounds) -> u64 {
        rounds.steps()
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        subtree::cost_ns(T::of(candidate).0, query, model)
    }

    #[inline(always)]
    fn run<F: Messages>(f: &F, rounds: &Rounds) -> impl Future<Output = Op> {
        rounds.run(f)
    }
}
