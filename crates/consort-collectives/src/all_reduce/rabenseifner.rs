//! Rabenseifner's all-reduce: recursive halving, and recursive doubling back.
//!
//! Source: Rabenseifner 2004, "Optimization of collective reduction operations", section 4; Thakur,
//! Rabenseifner and Gropp 2005, section 4.5. Neighbours come first, so that what is combined is a
//! row of ranks, and each half of the data is a range.
//!
//! Protocol (`patterns/rounds`), for `P = 2^n + e`:
//! 1. of the first `2 e` PEs each second one gives its data to the one before it, and waits;
//! 2. the other `2^n`, in rounds 0 to `n - 1`, exchange halves of the range that they have with the
//!    PE at distance `2^i` of them: the lower one combines the first half, the other the second;
//! 3. in the same rounds backwards they exchange the ranges that they have combined;
//! 4. those that wait are given the result.
//!
//! Cost: `2 log2 P` transfers and `2 (P - 1) / P` of the data through a PE; two transfers more, of
//! all the data, where `P` is no power of two.

use std::{future::Future, ops::Range};

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query, Rank, Span};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    patterns::rounds::{self, Buffers, Keep, Program, Round},
};

/// See the head of this file.
#[derive(Debug)]
pub struct Rabenseifner;

fn program(setting: &Setting) -> Option<Program> {
    let Setting { rank: Rank(rank), pes, bytes, element_bytes, .. } = *setting;
    let element = element_bytes.max(1);
    let count = pes.ilog2();
    let folded = pes - (1 << count);
    // The longest message: of all data where some wait, else of half of them, one element more.
    let half = bytes.div_ceil(element).div_ceil(2) * element;
    let (folds, longest) = if folded > 0 { (2, bytes) } else { (0, half) };
    let buffers = Buffers::new(setting, 2 * count + folds, longest, 1, count + 1)?;
    let chunks = buffers.chunks(longest);
    let (all, sum) = (Span::source(0, bytes), Span::target(0, bytes));
    // Number of a message, and of its word: those of halving and doubling with one PE are one.
    let round =
        |number: u32, word, sent, received| Round::alike(number * chunks, word, sent, received);
    let last = 2 * count + 1;
    if rank < 2 * folded && rank % 2 == 1 {
        let worker = Rank(rank - 1);
        let rounds = vec![
            round(0, 0, Some((worker, vec![all])), None),
            round(last, 0, None, Some((worker, vec![sum], Keep::Stores))),
        ];
        return Some(Program::new(setting, &buffers, rounds));
    }
    let waiting = (rank < 2 * folded).then_some(Rank(rank + 1));
    // PEs that exchange are numbered anew, in the order of their ranks.
    let rank_of = |node: u32| Rank(if node < folded { 2 * node } else { node + folded });
    let node = if rank < 2 * folded { rank / 2 } else { rank - folded };
    let mut rounds = Vec::new();
    let mut have: fn(usize, usize) -> Span = Span::source;
    if let Some(waiting) = waiting {
        let keep = Keep::After(vec![all]);
        rounds.push(round(0, 0, None, Some((waiting, vec![sum], keep))));
        have = Span::target;
    }
    let before = u32::from(folded > 0);
    let span = |place: fn(usize, usize) -> Span, range: &Range<usize>| {
        vec![place(range.start, range.len())]
    };
    // What is left of the data, and what was given away in each round.
    let (mut kept, mut given) = (0..bytes, Vec::new());
    for index in 0..count {
        let other = node ^ (1 << index);
        let first_bytes = kept.len().div_ceil(element).div_ceil(2) * element;
        let middle = kept.end.min(kept.start + first_bytes);
        let (first, second) = (kept.start..middle, middle..kept.end);
        let (mine, theirs, keep): (_, _, fn(_) -> _) =
            if node < other { (first, second, Keep::After) } else { (second, first, Keep::Before) };
        let (sent, operand) = (span(have, &theirs), span(have, &mine));
        let received = (rank_of(other), span(Span::target, &mine), keep(operand));
        let sent = Some((rank_of(other), sent));
        rounds.push(round(before + index, 1 + index, sent, Some(received)));
        given.push(theirs);
        kept = mine;
        have = Span::target;
    }
    for index in (0..count).rev() {
        let (other, theirs) = (rank_of(node ^ (1 << index)), &given[index as usize]);
        let received = (other, span(Span::target, theirs), Keep::Stores);
        let sent = Some((other, span(Span::target, &kept)));
        let number = before + 2 * count - 1 - index;
        rounds.push(round(number, 1 + index, sent, Some(received)));
        kept = kept.start.min(theirs.start)..kept.end.max(theirs.end);
    }
    if let Some(waiting) = waiting {
        rounds.push(round(last, 0, Some((waiting, vec![sum])), None));
    }
    Some(Program::new(setting, &buffers, rounds))
}

impl Algorithm for Rabenseifner {
    const NAME: &'static str = "rabenseifner";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Program;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Program, PlanError> {
        Self::check_names(candidate)?;
        if setting.pes < 2 || setting.bytes / setting.element_bytes.max(1) < setting.pes as usize {
            return Err(Self::incapable("it needs an element a PE, and two PEs"));
        }
        program(setting).ok_or(Self::incapable("the inbox is too small"))
    }

    fn steps(program: &Program) -> u64 {
        program.steps()
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (bytes, count) = (query.bytes as f64, query.pes.max(1).ilog2());
        let turns = f64::from(query.pes) / f64::from(model.cores.min(query.pes).max(1));
        let is_folded = !query.pes.is_power_of_two();
        let combined = bytes * if is_folded { 2.0 } else { 1.0 } / model.copy_gbps * turns;
        let halves = (1..=count).map(|index| (2.0, bytes / f64::from(1 << index)));
        let folds = is_folded.then_some((2.0, bytes));
        combined + rounds::cost_ns(query, model, halves.chain(folds))
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, program: &Program) -> impl Future<Output = Op> {
        rounds::run(f, program)
    }
}
