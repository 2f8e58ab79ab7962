//! Scatters down a tree: `flat` and `knomial`. A PE sends each child the blocks of the child's
//! subtree.
//!
//! Source: Nishtala and Yelick 2009, section 2.2, for the trees; Barnett et al. 1994 for a scatter
//! along the binomial tree. A subtree is a range of nodes, which are ranks relative to the root. So
//! its blocks are contiguous, or in two parts if the ranks wrap around. Radix 1 is the chain.
//!
//! Protocol (`protocols/exchange`): receive the blocks of this PE's subtree into scratch memory, or
//! as a leaf into the target; send each child the blocks of its subtree, the largest first; copy
//! this PE's block to the target.
//!
//! Cost: the depth of the tree in transfers. The root sends `P - 1` blocks in few messages. The
//! blocks that a PE forwards must fit its scratch memory.

use std::marker::PhantomData;

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

/// A scatter down a tree.
#[derive(Debug)]
pub struct DownTree<T>(PhantomData<T>);

/// The root sends to all PEs.
pub type Flat = DownTree<trees::Flat>;
/// A scatter down a k-nomial tree.
pub type Knomial = DownTree<trees::KnomialOfBlocks>;

fn rounds(setting: &Setting, shape: Shape) -> Option<Rounds> {
    let Setting { rank, call: CallSpec { root, pes, bytes, .. }, .. } = *setting;
    let subtree = Subtree::of(rank, root, pes, shape);
    let (fan, largest) = (shape.fan(pes), subtree::largest(pes, shape));
    // The blocks of several PEs may wrap around at the last rank, which makes two spans.
    let spans = if largest > 1 { 2 } else { 1 };
    let longest = largest as usize * bytes;
    let buffers = Buffers::new(setting, 1, longest, spans, fan)?;
    (largest <= 1 || longest <= setting.capabilities.scratch_bytes).then_some(())?;
    let (own, is_leaf) = (Span::target(0, bytes), subtree.children.is_empty());
    let place = if rank == root { Place::Source } else { Place::Accumulator };
    let mut all = Vec::new();
    if let Some((peer, credit)) = subtree.parent {
        let spans =
            if is_leaf { vec![own] } else { subtree.blocks(setting, subtree.nodes.clone(), place) };
        all.push(Round::at(0, credit).receive(peer, spans, OnReceive::Stores));
    }
    for (credit, (peer, nodes)) in (0..fan).zip(&subtree.children).rev() {
        let spans = subtree.blocks(setting, nodes.clone(), place);
        all.push(Round::at(0, credit).send(*peer, spans));
    }
    if !is_leaf || rank == root {
        let node = subtree.nodes.start;
        let source = subtree.blocks(setting, node..node + 1, place)[0];
        all.push(Round::default().copy(own, source));
    }
    Some(Rounds::new(setting, &buffers, all))
}

impl<T: Tree> Algorithm for DownTree<T> {
    const NAME: &'static str = T::NAME;
    const DIRECTION: Direction = Direction::Down;
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
