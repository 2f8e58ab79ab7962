//! Rabenseifner's all-reduce: a reduce-scatter by recursive halving, then an all-gather by
//! recursive doubling.
//!
//! Source: Rabenseifner 2004, "Optimization of collective reduction operations", section 4; Thakur,
//! Rabenseifner and Gropp 2005, section 4.5. As in these papers, neighbours are the first partners,
//! so that each PE combines contributions of consecutive ranks, and each half of the data is a
//! range.
//!
//! Protocol (`protocols/exchange`), for `P = 2^n + e`:
//! 1. among the first `2 e` PEs, each odd one sends its data to the PE before it, and waits;
//! 2. the other `2^n` PEs, in rounds 0 to `n - 1`, exchange halves of their current range with the
//!    PE at distance `2^i`: the lower PE combines the first half, the other PE the second;
//! 3. they exchange the combined ranges in the same rounds backwards;
//! 4. the waiting PEs receive the result.
//!
//! Cost: `2 log2 P` transfers, in which each PE sends `2 (P - 1) / P` times the data; two more
//! transfers of all the data if `P` is not a power of two.

use std::ops::Range;

use consort_fabric::{CallSpec, Candidate, MachineModel, Place, Query, Rank, Span};

use crate::{
    Algorithm, PlanError, Setting,
    protocols::{
        exchange::{self, Buffers, OnReceive, Round, Rounds},
        in_rounds::InRounds,
    },
};

#[derive(Hash)]
pub struct Rabenseifner;

fn rounds(setting: &Setting) -> Option<Rounds> {
    let Setting { rank: Rank(rank), call: CallSpec { pes, bytes, element_bytes, .. }, .. } =
        *setting;
    let element = element_bytes.max(1);
    let count = pes.ilog2();
    let folded = pes - (1 << count);
    // The longest message: all of the data if some PEs wait; otherwise half of it, rounded up to
    // elements.
    let half = bytes.div_ceil(element).div_ceil(2) * element;
    let (folds, longest) = if folded > 0 { (2, bytes) } else { (0, half) };
    let buffers = Buffers::new(setting, 2 * count + folds, longest, 1, count + 1)?;
    let chunks = buffers.chunks(longest);
    let own = setting.contribution();
    let (all, sum) = (Span { place: own, at: 0, bytes }, Span::target(0, bytes));
    // Halving and doubling with the same PE share one credit.
    let round = |number: u32, credit| Round::at(number * chunks, credit);
    let last = 2 * count + 1;
    if rank < 2 * folded && rank % 2 == 1 {
        let worker = Rank(rank - 1);
        let rounds = vec![
            round(0, 0).send(worker, [all]),
            round(last, 0).receive(worker, [sum], OnReceive::Stores),
        ];
        return Some(Rounds::new(setting, &buffers, rounds));
    }
    let waiting = (rank < 2 * folded).then_some(Rank(rank + 1));
    // The PEs that exchange are renumbered in rank order.
    let rank_of = |node: u32| Rank(if node < folded { 2 * node } else { node + folded });
    let node = if rank < 2 * folded { rank / 2 } else { rank - folded };
    let mut rounds = Vec::new();
    let mut have = own;
    if let Some(waiting) = waiting {
        rounds.push(round(0, 0).receive(waiting, [sum], OnReceive::After(vec![all])));
        have = Place::Target;
    }
    let before = u32::from(folded > 0);
    let span =
        |place, range: &Range<usize>| vec![Span { place, at: range.start, bytes: range.len() }];
    // The range of the data that is left, and the ranges sent away, by round.
    let (mut kept, mut given) = (0..bytes, Vec::new());
    for index in 0..count {
        let other = node ^ (1 << index);
        let first_bytes = kept.len().div_ceil(element).div_ceil(2) * element;
        let middle = kept.end.min(kept.start + first_bytes);
        let (first, second) = (kept.start..middle, middle..kept.end);
        let (mine, theirs, keep): (_, _, fn(_) -> _) = if node < other {
            (first, second, OnReceive::After)
        } else {
            (second, first, OnReceive::Before)
        };
        let halve = round(before + index, 1 + index).send(rank_of(other), span(have, &theirs));
        let operand = keep(span(have, &mine));
        rounds.push(halve.receive(rank_of(other), span(Place::Target, &mine), operand));
        given.push(theirs);
        kept = mine;
        have = Place::Target;
    }
    for index in (0..count).rev() {
        let (other, theirs) = (rank_of(node ^ (1 << index)), &given[index as usize]);
        let double = round(before + 2 * count - 1 - index, 1 + index)
            .send(other, span(Place::Target, &kept))
            .receive(other, span(Place::Target, theirs), OnReceive::Stores);
        rounds.push(double);
        kept = kept.start.min(theirs.start)..kept.end.max(theirs.end);
    }
    if let Some(waiting) = waiting {
        rounds.push(round(last, 0).send(waiting, [sum]));
    }
    Some(Rounds::new(setting, &buffers, rounds))
}

impl InRounds for Rabenseifner {
    const NAME: &'static str = "rabenseifner";
    const IN_PLACE: bool = true;

    fn rounds(setting: &Setting, _: &Candidate) -> Result<Rounds, PlanError> {
        if setting.call.pes < 2
            || setting.call.bytes / setting.call.element_bytes.max(1) < setting.call.pes as usize
        {
            return Err(Self::incapable("it needs at least two PEs, and an element per PE"));
        }
        rounds(setting).ok_or(Self::incapable("the inbox or the scratch memory is too small"))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (bytes, count) = (query.bytes as f64, query.pes.max(1).ilog2());
        let turns = model.pes_a_core(query.pes);
        let is_folded = !query.pes.is_power_of_two();
        let combined = bytes * if is_folded { 2.0 } else { 1.0 } / model.copy_gbps * turns;
        let halves = (1..=count).map(|index| (2.0, bytes / f64::from(1 << index)));
        let folds = is_folded.then_some((2.0, bytes));
        combined + exchange::cost_ns(query, model, halves.chain(folds))
    }
}
