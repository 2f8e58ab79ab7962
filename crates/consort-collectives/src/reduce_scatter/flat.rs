//! Flat reduce-scatter: everyone sends everyone its block, and combines what comes.
//!
//! Idea: as in the all-reduce `flat`, for short blocks among few PEs nothing is faster than one
//! transfer (an all-to-all is a dissemination of radix `P`; Nishtala, Zheng, Hargrove and Yelick
//! 2011, section 3.4).
//!
//! Protocol (`patterns/rounds`):
//! 1. send every other PE its block;
//! 2. combine the others' and the own one, in the order of the ranks.
//!
//! Cost: one transfer, `P - 1` messages a PE.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, OperatorClass, Query, Rank};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    patterns::{
        rounds::{self, Buffers, Keep, Message, Program, Round},
        shown::others,
    },
};

/// See the head of this file.
#[derive(Debug)]
pub struct Flat;

fn program(setting: &Setting, buffers: &Buffers) -> Program {
    let Setting { rank: me, pes, .. } = *setting;
    let (own, result) = (setting.source_block(me.0), setting.target_block(0));
    // What a PE receives is numbered by its sender, itself left out.
    let message = |peer: Rank, span, from: Rank, to: Rank| {
        let number = if from < to { from.0 } else { from.0 - 1 };
        let first = number * buffers.chunks(setting.bytes);
        Message { peer, spans: vec![span], first, word: 0 }
    };
    let sent = |to: Rank| {
        let sent = Some(message(to, setting.source_block(to.0), me, to));
        Round { sent, ..Round::default() }
    };
    let mut all: Vec<Round> = others(me, pes).map(sent).collect();
    let commutes = setting.operator == OperatorClass::Commutative;
    let mut so_far = (commutes || me.0 == 0).then_some(own);
    for from in (0..pes).map(Rank).filter(|&from| from != me) {
        let (keep, mut combined) = match so_far {
            Some(left) => (Keep::After(vec![left]), Vec::new()),
            None if me.0 == 1 => (Keep::Before(vec![own]), Vec::new()),
            None => (Keep::Stores, Vec::new()),
        };
        if !commutes && me.0 > 1 && from.0 + 1 == me.0 {
            combined.push([result, result, own]);
        }
        let received = Some((message(from, result, from, me), keep));
        all.push(Round { received, combined, ..Round::default() });
        so_far = Some(result);
    }
    if pes == 1 {
        Round::copy_first(&mut all, result, own);
    }
    Program::new(setting, buffers, all)
}

impl Algorithm for Flat {
    const NAME: &'static str = "flat";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Program;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Program, PlanError> {
        Self::check_names(candidate)?;
        if !setting.capabilities.buffered {
            return Err(Self::incapable("the fabric's sends wait for their receivers"));
        }
        let buffers = Buffers::new(setting, setting.pes - 1, setting.bytes, 1, 1)
            .filter(Buffers::hold_all)
            .ok_or(Self::incapable("the messages do not fit the inbox"))?;
        Ok(program(setting, &buffers))
    }

    fn steps(program: &Program) -> u64 {
        program.steps()
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (bytes, others) = (query.bytes as f64, f64::from(query.pes) - 1.0);
        let turns = f64::from(query.pes) / f64::from(model.cores.min(query.pes).max(1));
        let combined = others * bytes / model.copy_gbps * turns;
        combined + rounds::cost_at_once_ns(query, model, others, bytes)
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, program: &Program) -> impl Future<Output = Op> {
        rounds::run(f, program)
    }
}
