//! Bruck's all-to-all: blocks travel together as long as their routes are the same.
//!
//! Source: Bruck, Ho, Kipnis, Upfal and Weathersby 1997, "Efficient algorithms for all-to-all
//! communications in multiport message-passing systems", section 3, with the `k - 1` ports used one
//! after the other. The paper's first and last phases, which shift all blocks, are left out.
//! Instead, from its first stop on, a block whose total distance is `i` is stored at the final
//! place of the block from the PE `i` ranks before.
//!
//! Protocol (`protocols/exchange`), for each digit of the distances from 1 to `P - 1` in base `k`,
//! lowest first, and each nonzero value `d` of the digit: all blocks whose distance has the value
//! `d` in this digit move `d` times the digit's weight, packed into one message.
//!
//! Cost: `(k - 1) log_k P` transfers of up to `P / k` blocks each, which are packed and unpacked.
//! For short blocks among many PEs.

use consort_fabric::{CallSpec, Candidate, MachineModel, Query, Span};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    protocols::{
        exchange::{self, Buffers, OnReceive, Round, Rounds},
        in_rounds::InRounds,
    },
};

#[derive(Hash)]
pub struct Bruck;

/// The message of a round: its distance, the weight of the digit, and its blocks by their total
/// distance. The furthest come first, so that consecutive distances are in the order of their
/// places.
pub(super) struct Packed {
    pub(super) far: u32,
    pub(super) weight: u32,
    pub(super) blocks: Vec<u32>,
}

/// Returns the messages of all rounds.
pub(super) fn packed(pes: u32, radix: u32) -> Vec<Packed> {
    let (mut all, mut weight) = (Vec::new(), 1_u32);
    while weight < pes {
        for digit in 1..radix {
            let Some(far) = digit.checked_mul(weight).filter(|&far| far < pes) else { break };
            let goes = |distance: &u32| distance / weight % radix == digit;
            let blocks = (far..pes).rev().filter(goes).collect();
            all.push(Packed { far, weight, blocks });
        }
        weight = weight.saturating_mul(radix);
    }
    all
}

/// Adds a copy. Extends the last copy if this one continues it.
fn add(copies: &mut Vec<(Span, Span)>, (target, source): (Span, Span)) {
    let follows = |before: Span, next: Span| {
        before.place == next.place && before.at + before.bytes == next.at
    };
    match copies.last_mut() {
        Some((to, from)) if follows(*to, target) && follows(*from, source) => {
            to.bytes += target.bytes;
            from.bytes += source.bytes;
        }
        _ => copies.push((target, source)),
    }
}

fn rounds(setting: &Setting, radix: u32) -> Option<Rounds> {
    let Setting { rank, call: CallSpec { pes, bytes, .. }, .. } = *setting;
    let all = packed(pes, radix);
    let count = u32::try_from(all.len()).ok()?;
    let most = all.iter().map(|round| round.blocks.len()).max().unwrap_or(0);
    let longest = most.checked_mul(bytes)?;
    (longest <= setting.capabilities.scratch_bytes).then_some(())?;
    let buffers = Buffers::new(setting, count, longest, 1, count)?;
    let before = |distance: u32| rank.plus((pes - distance) as usize, pes as usize);
    let place = |distance: u32| setting.target_block(before(distance).0);
    let (mut rounds, mut first) = (Vec::new(), 0);
    for (credit, Packed { far, weight, blocks }) in (0..).zip(&all) {
        let length = blocks.len() * bytes;
        let (mut packs, mut unpacks) = (Vec::new(), Vec::new());
        for (at, &distance) in (0..length).step_by(bytes.max(1)).zip(blocks) {
            // A block that has not moved yet is in the caller's source.
            let has_moved = !distance.is_multiple_of(*weight);
            let to = rank.plus(distance as usize, pes as usize);
            let block = if has_moved { place(distance) } else { setting.source_block(to.0) };
            add(&mut packs, (Span { at, ..Span::accumulator(bytes) }, block));
            add(&mut unpacks, (place(distance), Span { at, ..Span::incoming(bytes) }));
        }
        let copies = |copied: Vec<(Span, Span)>| {
            let copy = |round: Round, (target, source)| round.copy(target, source);
            copied.into_iter().fold(Round::default(), copy)
        };
        let exchange = Round::at(first, credit)
            .send(rank.plus(*far as usize, pes as usize), [Span::accumulator(length)])
            .receive(before(*far), [Span::incoming(length)], OnReceive::Stores);
        rounds.extend([copies(packs), exchange, copies(unpacks)]);
        first += buffers.chunks(length);
    }
    let own = (setting.target_block(rank.0), setting.source_block(rank.0));
    Round::copy_first(&mut rounds, own.0, own.1);
    Some(Rounds::new(setting, &buffers, rounds))
}

impl InRounds for Bruck {
    const NAME: &'static str = "bruck";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[2, 4, 8], range: (2, 1 << 16) }];

    fn rounds(setting: &Setting, candidate: &Candidate) -> Result<Rounds, PlanError> {
        let radix = u32::try_from(Self::parameter(candidate, 0)?).unwrap_or(u32::MAX);
        rounds(setting, radix).ok_or(Self::incapable("the messages do not fit the memory"))
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let radix = candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok());
        let bytes = query.bytes as f64;
        let rounds = packed(query.pes, radix.unwrap_or(2));
        let sizes = || rounds.iter().map(|round| round.blocks.len() as f64 * bytes);
        // Each block of a message is packed and unpacked.
        let copied = (bytes + 2.0 * sizes().sum::<f64>()) / model.copy_gbps;
        let turns = model.pes_a_core(query.pes);
        copied * turns + exchange::cost_ns(query, model, sizes().map(|size| (1.0, size)))
    }
}
