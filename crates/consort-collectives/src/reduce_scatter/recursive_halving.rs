//! Recursive halving: in each round, a PE sends half of its remaining blocks to a partner, and
//! combines the other half with the blocks that it receives.
//!
//! Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication
//! operations in MPICH", section 4.4. In this paper the furthest partners come first, which
//! requires a commutative operator. For other operators, neighbours come first here, then PEs twice
//! as far away, and so on. A PE then combines contributions of consecutive ranks, and the blocks
//! that it keeps are not contiguous.
//!
//! Protocol, for `P` a power of two (`protocols/exchange`), for each bit of the ranks, highest
//! first (lowest first if the operator is not commutative): the partner is the PE whose rank
//! differs in this bit. Of the remaining blocks, send to the partner those whose numbers differ
//! from this PE's rank in this bit. Keep the others, receive the partner's contributions to them,
//! and combine them.
//!
//! Scratch memory holds partial results of half of the blocks. If it is too small for them, a PE
//! combines one piece of each block at a time.
//!
//! Cost: `log2 P` transfers, `P - 1` blocks, each combined once.

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
pub struct RecursiveHalving;

/// Returns the spans of blocks, joined into one span if they are adjacent on both PEs.
fn joined(spans: impl Iterator<Item = Span>, is_row: bool) -> Vec<Span> {
    let spans: Vec<Span> = spans.collect();
    match spans.first() {
        Some(first) if is_row => {
            vec![Span { bytes: spans.iter().map(|span| span.bytes).sum(), ..*first }]
        }
        _ => spans,
    }
}

fn rounds(setting: &Setting) -> Option<Rounds> {
    let Setting { rank: Rank(me), call: CallSpec { pes, bytes, .. }, .. } = *setting;
    let commutes = setting.call.class == OperatorClass::Commutative;
    let (count, half) = (pes.ilog2(), pes / 2);
    // In a team of two, each PE combines in its target.
    let pieces = Pieces::new(setting, if count < 2 { 0 } else { half })?;
    let (messages, longest) = (pieces.messages(count)?, pieces.bytes);
    let is_row = longest == bytes && commutes;
    let spans = if is_row { 1 } else { half.max(1) };
    let buffers = Buffers::new(setting, messages, half as usize * longest, spans, count)?;
    let chunks_in = |round: u32| buffers.chunks((half >> round) as usize * longest);
    let of_piece = |at, length, mut first: u32| {
        let mut all = Vec::new();
        let result = Span::target(at, length);
        // The place of a block's partial result among the blocks that are kept after the first
        // round.
        let place = |block: u32| {
            let index = if commutes { block % half } else { block / 2 };
            Span { at: index as usize * length, ..Span::accumulator(length) }
        };
        let mut kept: Vec<u32> = (0..pes).collect();
        for round in 0..count {
            let bit = if commutes { half >> round } else { 1 << round };
            let partner = me ^ bit;
            let (mine, theirs): (Vec<_>, Vec<_>) =
                kept.iter().partition(|&block| block & bit == me & bit);
            let have = |&block: &u32| {
                let source = Span::source(block as usize * bytes + at, length);
                if round == 0 { source } else { place(block) }
            };
            let operands = joined(mine.iter().map(have), is_row);
            let is_before = partner < me && !commutes;
            let keep =
                if is_before { OnReceive::Before(operands) } else { OnReceive::After(operands) };
            let target = |&block: &u32| if round + 1 == count { result } else { place(block) };
            let halve = Round::at(first, round)
                .send(Rank(partner), joined(theirs.iter().map(have), is_row))
                .receive(Rank(partner), joined(mine.iter().map(target), is_row), keep);
            all.push(halve);
            first += chunks_in(round);
            kept = mine;
        }
        if pes == 1 {
            Round::copy_first(&mut all, result, Span::source(at, length));
        }
        all
    };
    let passes = pieces.passes((0..count).map(chunks_in).sum(), of_piece);
    Some(Rounds::of_passes(setting, &buffers, passes))
}

impl InRounds for RecursiveHalving {
    const NAME: &'static str = "recursive_halving";

    fn rounds(setting: &Setting, _: &Candidate) -> Result<Rounds, PlanError> {
        if !setting.call.pes.is_power_of_two() {
            return Err(Self::incapable(format!(
                "{} PEs are not a power of two",
                setting.call.pes
            )));
        }
        rounds(setting).ok_or(Self::incapable("the inbox or the scratch memory is too small"))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let bytes = query.bytes as f64;
        let turns = model.pes_a_core(query.pes);
        let combined = (f64::from(query.pes) - 1.0) * bytes / model.copy_gbps * turns;
        let rounds =
            (0..query.pes.max(1).ilog2()).map(|index| (1.0, bytes * f64::from(1 << index)));
        combined + exchange::cost_ns(query, model, rounds)
    }
}
