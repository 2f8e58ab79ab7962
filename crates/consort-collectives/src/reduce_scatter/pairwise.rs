//! Pairwise reduce-scatter: in each round a PE receives one PE's contribution to its block.
//!
//! Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication
//! operations in MPICH", section 4.4, for long messages and commutative operators. For other
//! operators, the contributions of the PEs before this one and of those after it are combined
//! separately.
//!
//! Protocol, in rounds 1 to `P - 1` (`protocols/exchange`): send PE `r - i` its block, receive a
//! contribution to this PE's block from PE `r + i`, and combine it with the result so far. If the
//! operator is not commutative, a PE combines its own contribution with those of the PEs after it.
//! In scratch memory, it combines the contributions of the PEs before it. Both are combined in rank
//! order. At the end the PE combines the two results.
//!
//! Cost: `P - 1` consecutive transfers, `P - 1` blocks, each combined once.

use consort_fabric::{CallSpec, Candidate, MachineModel, OperatorClass, Query, Rank, Span};

use super::Pieces;
use crate::{
    Algorithm, PlanError, Setting,
    protocols::{
        exchange::{self, Buffers, OnReceive, Round, Rounds},
        in_rounds::InRounds,
    },
};

#[derive(Hash)]
pub struct Pairwise;

fn rounds(setting: &Setting) -> Option<Rounds> {
    let Setting { rank, call: CallSpec { pes, bytes, .. }, .. } = *setting;
    let commutes = setting.call.class == OperatorClass::Commutative;
    // The result of the PEs before this one must fit the scratch memory.
    let pieces = Pieces::new(setting, if commutes { 0 } else { 1 })?;
    let buffers = Buffers::new(setting, pieces.messages(pes - 1)?, pieces.bytes, 1, pes - 1)?;
    let chunks = buffers.chunks(pieces.bytes);
    let of_piece = |at, length, first: u32| {
        let mut all = Vec::new();
        let block_of = |to: u32| Span::source(to as usize * bytes + at, length);
        let (own, result) = (block_of(rank.0), Span::target(at, length));
        let before = Span::accumulator(length);
        let mut so_far = own;
        for index in 1..pes {
            let [to, from] =
                [pes - index, index].map(|distance| rank.plus(distance as usize, pes as usize));
            let (target, keep) = if from > rank || commutes {
                (result, OnReceive::After(vec![std::mem::replace(&mut so_far, result)]))
            } else if rank == Rank(1) {
                (result, OnReceive::Before(vec![so_far]))
            } else if from == Rank(0) {
                (before, OnReceive::Stores)
            } else {
                (before, OnReceive::After(vec![before]))
            };
            let mut round = Round::at(first + (index - 1) * chunks, index - 1)
                .send(to, [block_of(to.0)])
                .receive(from, [target], keep);
            if target == before && index + 1 == pes {
                round = round.combine(result, before, so_far);
            }
            all.push(round);
        }
        if pes == 1 {
            Round::copy_first(&mut all, result, own);
        }
        all
    };
    let passes = pieces.passes((pes - 1) * chunks, of_piece);
    Some(Rounds::of_passes(setting, &buffers, passes))
}

impl InRounds for Pairwise {
    const NAME: &'static str = "pairwise";

    fn rounds(setting: &Setting, _: &Candidate) -> Result<Rounds, PlanError> {
        rounds(setting).ok_or(Self::incapable("the inbox or the scratch memory is too small"))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (bytes, others) = (query.bytes as f64, f64::from(query.pes) - 1.0);
        let turns = model.pes_a_core(query.pes);
        let combined = others * bytes / model.copy_gbps * turns;
        combined + exchange::cost_ns(query, model, [(others, bytes)])
    }
}
