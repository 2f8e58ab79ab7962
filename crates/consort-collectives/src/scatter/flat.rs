//! Flat scatter: the root sends everyone its block.
//!
//! Source: the flat tree of Nishtala and Yelick 2009, section 4.
//!
//! Protocol (`patterns/rounds`): the root sends block `i` to PE `i`, from the PE after it on, and
//! copies its own at last.
//!
//! Cost: `P - 1` messages, all of them the root's; one transfer on the critical path.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query, Span};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    patterns::{
        rounds::{self, Buffers, Keep, Message, Program, Round},
        subtree,
    },
};

/// See the head of this file.
#[derive(Debug)]
pub struct Flat;

fn program(setting: &Setting) -> Option<Program> {
    let Setting { rank, root, pes, bytes, .. } = *setting;
    let buffers = Buffers::new(setting, 1, bytes, 1, pes - 1)?;
    let own = Span::target(0, bytes);
    let relative = (rank.0 + pes - root.0) % pes;
    let mut all = Vec::new();
    if relative == 0 {
        for node in 1..pes {
            let peer = root.plus(node.into(), pes);
            let spans = vec![setting.source_block(peer.0)];
            let sent = Some(Message { peer, spans, first: 0, word: node - 1 });
            all.push(Round { sent, ..Round::default() });
        }
        Round::copy_first(&mut all, own, setting.source_block(root.0));
    } else {
        let message = Message { peer: root, spans: vec![own], first: 0, word: relative - 1 };
        all.push(Round { received: Some((message, Keep::Stores)), ..Round::default() });
    }
    Some(Program::new(setting, &buffers, all))
}

impl Algorithm for Flat {
    const NAME: &'static str = "flat";
    const DIRECTION: Direction = Direction::Down;
    const ROOT_ACTS_APART: bool = true;
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Program;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Program, PlanError> {
        Self::check_names(candidate)?;
        program(setting).ok_or(Self::incapable("the inbox is too small"))
    }

    fn steps(program: &Program) -> u64 {
        program.steps()
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        subtree::cost_ns(query.pes, query, model)
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, program: &Program) -> impl Future<Output = Op> {
        rounds::run(f, program)
    }
}
