//! Bruck's all-gather, for any number of PEs: the number of blocks of a PE grows by a factor of `k`
//! in each phase.
//!
//! Source: Bruck, Ho, Kipnis, Upfal and Weathersby 1997, "Efficient algorithms for all-to-all
//! communications in multiport message-passing systems", section 4. The `k - 1` ports of a phase
//! are used at once if the inbox has room for all messages of the call and sends do not wait for
//! their receivers; otherwise they are used one after the other. The paper shifts blocks at the
//! end. Here blocks are received at their final places, and wrap around.
//!
//! Protocol (`protocols/exchange`): when PE `r` has blocks `r` to `r + n - 1`, modulo `P`, it does
//! this for `d` from 1 to `k - 1`: it sends its first blocks to PE `r - d n`, but no more than that
//! PE lacks, and receives the blocks after its own from PE `r + d n`. Then it has `k n` blocks.
//!
//! Cost: `log_k P` phases of `k - 1` messages, `P - 1` blocks.

use consort_fabric::{CallSpec, Candidate, MachineModel, Query, Rank, Span};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    protocols::{
        exchange::{self, Buffers, OnReceive, Round, Rounds},
        in_rounds::InRounds,
    },
};

#[derive(Hash)]
pub struct Bruck;

/// Returns the phases: for each round of a phase, the distance of the partners and the number of
/// blocks.
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

fn rounds(setting: &Setting, radix: u32) -> Option<Rounds> {
    let Setting { rank, call: CallSpec { pes, bytes, .. }, .. } = *setting;
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
    let (mut all, mut first, mut credit) = (Vec::new(), 0, 0);
    for phase in phases {
        let mut rounds = Vec::new();
        for (far, count) in phase {
            let to = rank.plus((pes - far) as usize, pes as usize);
            let from = rank.plus(far as usize, pes as usize);
            let sent = if count == 1 && all.is_empty() { vec![own] } else { blocks(rank, count) };
            let round = Round::at(first, credit).send(to, sent);
            rounds.push(round.receive(from, blocks(from, count), OnReceive::Stores));
            first += buffers.chunks(count as usize * bytes);
            credit += 1;
        }
        all.append(&mut buffers.at_once(setting, rounds));
    }
    Round::copy_first(&mut all, setting.target_block(rank.0), own);
    Some(Rounds::new(setting, &buffers, all))
}

impl InRounds for Bruck {
    const NAME: &'static str = "bruck";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[2, 4, 8], range: (2, 1 << 16) }];

    fn rounds(setting: &Setting, candidate: &Candidate) -> Result<Rounds, PlanError> {
        let radix = u32::try_from(Self::parameter(candidate, 0)?).unwrap_or(u32::MAX);
        rounds(setting, radix).ok_or(Self::incapable("the inbox is too small"))
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let radix = candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok());
        let phases = phases(query.pes, radix.unwrap_or(2));
        let bytes = query.bytes as f64;
        // All messages of a phase but the last have the same length.
        let phase = |rounds: &Vec<(u32, u32)>| {
            let messages = rounds.len() as f64;
            let blocks = rounds.iter().map(|&(_, blocks)| f64::from(blocks)).sum::<f64>();
            exchange::cost_at_once_ns(query, model, messages, blocks / messages * bytes)
        };
        exchange::own_copy_ns(query, model) + phases.iter().map(phase).sum::<f64>()
    }
}
