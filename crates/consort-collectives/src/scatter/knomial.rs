//! Scatter down a k-nomial tree: a PE hands each child the blocks of the child's subtree.
//!
//! Source: Nishtala and Yelick 2009, section 2.2, for the trees; the binomial one as a scatter,
//! Barnett et al. 1994. A subtree is a range of nodes, which are ranks relative to the root, so
//! its blocks are one piece, or two where they wrap around at the root. Radix 1 is the chain.
//!
//! Protocol (`patterns/rounds`): receive the blocks of the own subtree into scratch memory, or as a
//! leaf into the target; send each child those of its subtree, the largest first; copy the own.
//!
//! Cost: the depth of the tree in transfers; the root sends `P - 1` blocks in few messages. What
//! a PE passes on has to fit its scratch memory.

use std::future::Future;

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
    let buffers = Buffers::new(setting, 1, longest, 2, fan)?;
    (largest <= 1 || longest <= setting.capabilities.scratch_bytes).then_some(())?;
    let (own, is_leaf) = (Span::target(0, bytes), subtree.children.is_empty());
    let place = if rank == root { Place::Source } else { Place::Accumulator };
    let mut all = Vec::new();
    if let Some((peer, word)) = subtree.parent {
        let spans =
            if is_leaf { vec![own] } else { subtree.blocks(setting, subtree.nodes.clone(), place) };
        let message = Message { peer, spans, first: 0, word };
        all.push(Round { received: Some((message, Keep::Stores)), ..Round::default() });
    }
    for (word, (peer, nodes)) in (0..fan).zip(&subtree.children).rev() {
        let spans = subtree.blocks(setting, nodes.clone(), place);
        let sent = Some(Message { peer: *peer, spans, first: 0, word });
        all.push(Round { sent, ..Round::default() });
    }
    if !is_leaf || rank == root {
        let node = subtree.nodes.start;
        let source = subtree.blocks(setting, node..node + 1, place)[0];
        all.push(Round { copied: vec![(own, source)], ..Round::default() });
    }
    Some(Program::new(setting, &buffers, all))
}

impl Algorithm for Knomial {
    const NAME: &'static str = "knomial";
    const DIRECTION: Direction = Direction::Down;
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
