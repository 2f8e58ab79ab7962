//! Gather up a k-nomial tree: a PE gives its parent the blocks of its subtree.
//!
//! Source: Nishtala and Yelick 2009, section 2.2, for the trees; the scatter `knomial` the other
//! way round. Radix 1 is the chain.
//!
//! Protocol (`patterns/rounds`): copy the own block into scratch memory; receive the blocks of each
//! child's subtree beside it, the smallest first; send all to the parent. The root has them in its
//! target, and a leaf sends its block from where it lies.
//!
//! Cost: the depth of the tree in transfers; the root receives `P - 1` blocks in few messages. What
//! a PE passes on has to fit its scratch memory.

use std::{future::Future, ops::Range};

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Place, Query, Span};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    patterns::{
        rounds::{self, Buffers, Keep, Message, Program, Round},
        subtree::{self, Subtree},
        tree::Shape,
    },
};

/// See the head of this file.
#[derive(Debug)]
pub struct Knomial;

fn program(setting: &Setting, radix: u32) -> Option<Program> {
    let Setting { rank, root, pes, bytes, .. } = *setting;
    let subtree = Subtree::of(rank, root, pes, radix);
    let (fan, largest) = (Shape::Knomial(radix).fan(pes), subtree::largest(pes, radix));
    let longest = largest as usize * bytes;
    let buffers = Buffers::new(setting, fan, longest, 2, 1)?;
    (largest <= 1 || longest <= setting.capabilities.scratch_bytes).then_some(())?;
    let (own, is_leaf) = (Span::source(0, bytes), subtree.children.is_empty());
    let place = if rank == root { Place::Target } else { Place::Accumulator };
    // The numbers of the first chunks of a PE's children, the smallest subtree first.
    let firsts = |children: &[(_, Range<u32>)]| -> Vec<u32> {
        let chunks = children.iter().map(|(_, nodes)| buffers.chunks(nodes.len() * bytes));
        chunks.scan(0, |next, chunks| Some(std::mem::replace(next, *next + chunks))).collect()
    };
    let mut all = Vec::new();
    for (first, (peer, nodes)) in firsts(&subtree.children).into_iter().zip(&subtree.children) {
        let spans = subtree.blocks(setting, nodes.clone(), place);
        let message = Message { peer: *peer, spans, first, word: 0 };
        all.push(Round { received: Some((message, Keep::Stores)), ..Round::default() });
    }
    if !is_leaf || rank == root {
        let node = subtree.nodes.start;
        let target = subtree.blocks(setting, node..node + 1, place)[0];
        Round::copy_first(&mut all, target, own);
    }
    if let Some((peer, index)) = subtree.parent {
        let siblings = Subtree::of(peer, root, pes, radix).children;
        let spans =
            if is_leaf { vec![own] } else { subtree.blocks(setting, subtree.nodes.clone(), place) };
        let first = firsts(&siblings)[index as usize];
        let sent = Some(Message { peer, spans, first, word: 0 });
        all.push(Round { sent, ..Round::default() });
    }
    Some(Program::new(setting, &buffers, all))
}

impl Algorithm for Knomial {
    const NAME: &'static str = "knomial";
    const DIRECTION: Direction = Direction::Up;
    const ROOT_ACTS_APART: bool = true;
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[2, 4, 8], range: (1, 1 << 16) }];
    type Schedule = Program;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Program, PlanError> {
        Self::check_names(candidate)?;
        let radix = u32::try_from(Self::parameter(candidate, 0)?).unwrap_or(u32::MAX);
        let why = "the inbox or the scratch memory is too small";
        program(setting, radix).ok_or(Self::incapable(why))
    }

    fn steps(program: &Program) -> u64 {
        program.steps()
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let radix = candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok());
        subtree::cost_ns(radix.unwrap_or(2), query, model)
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, program: &Program) -> impl Future<Output = Op> {
        rounds::run(f, program)
    }
}
