//! Bruck's all-gather: what a PE has grows by a factor of `k` in each phase, for any number of PEs.
//!
//! Source: Bruck, Ho, Kipnis, Upfal and Weathersby 1997, "Efficient algorithms for all-to-all
//! communications in multiport message-passing systems", section 4; each phase has their `k - 1`
//! ports one after the other, or at once where the inbox has a place for all. There blocks are
//! shifted at the end; here they go to their places at once, and wrap around.
//!
//! Protocol (`patterns/rounds`): when PE `r` has blocks `r` to `r + n - 1`, modulo `P`, it sends
//! the first of them, as many as are missing, to PE `r - d n` and receives those after it from PE
//! `r + d n`, for `d` from 1 to `k - 1`; then it has `k n`.
//!
//! Cost: `log_k P` phases of `k - 1` messages, `P - 1` blocks.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query, Rank, Span};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    patterns::rounds::{self, Buffers, Keep, Program, Round},
};

/// See the head of this file.
#[derive(Debug)]
pub struct Bruck;

/// The phases: how far the blocks go in each round of one, and how many.
fn phases(pes: u32, radix: u32) -> Vec<Vec<(u32, u32)>> {
    let (mut phases, mut have) = (Vec::new(), 1);
    while have < pes {
        let distances = (1..radix).map_while(|digit| digit.checked_mul(have));
        let distances = distances.take_while(|&far| far < pes);
        phases.push(distances.map(|far| (far, have.min(pes - far))).collect());
        have = have.saturating_mul(radix);
    }
    phases
}

fn program(setting: &Setting, radix: u32) -> Option<Program> {
    let Setting { rank, pes, bytes, .. } = *setting;
    let phases = phases(pes, radix);
    let sizes = || phases.iter().flatten().map(|&(_, blocks)| blocks as usize * bytes);
    let count = u32::try_from(sizes().count()).ok()?;
    let buffers = Buffers::new(setting, count, sizes().max().unwrap_or(0), 2, count)?;
    let own = setting.source_block(0);
    let blocks = |Rank(first): Rank, count: u32| {
        let head = count.min(pes - first);
        let part =
            |first: u32, count: u32| Span::target(first as usize * bytes, count as usize * bytes);
        let parts = [part(first, head), part(0, count - head)];
        parts.into_iter().take(if head < count { 2 } else { 1 }).collect::<Vec<_>>()
    };
    let (mut all, mut first, mut word) = (Vec::new(), 0, 0);
    for phase in phases {
        let mut rounds = Vec::new();
        for (far, count) in phase {
            let to = rank.plus(u64::from(pes - far), pes);
            let from = rank.plus(far.into(), pes);
            let sent = if count == 1 && all.is_empty() { vec![own] } else { blocks(rank, count) };
            let received = (from, blocks(from, count), Keep::Stores);
            rounds.push(Round::alike(first, word, Some((to, sent)), Some(received)));
            first += buffers.chunks(count as usize * bytes);
            word += 1;
        }
        all.append(&mut buffers.at_once(setting, rounds));
    }
    Round::copy_first(&mut all, setting.target_block(rank.0), own);
    Some(Program::new(setting, &buffers, all))
}

impl Algorithm for Bruck {
    const NAME: &'static str = "bruck";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[2, 4, 8], range: (2, 1 << 16) }];
    type Schedule = Program;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Program, PlanError> {
        Self::check_names(candidate)?;
        let radix = u32::try_from(Self::parameter(candidate, 0)?).unwrap_or(u32::MAX);
        program(setting, radix).ok_or(Self::incapable("the inbox is too small"))
    }

    fn steps(program: &Program) -> u64 {
        program.steps()
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let radix = candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok());
        let phases = phases(query.pes, radix.unwrap_or(2));
        let bytes = query.bytes as f64;
        let round = |&(_, blocks): &(u32, u32)| (1.0, f64::from(blocks) * bytes);
        bytes / model.copy_gbps + rounds::cost_ns(query, model, phases.iter().flatten().map(round))
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, program: &Program) -> impl Future<Output = Op> {
        rounds::run(f, program)
    }
}
