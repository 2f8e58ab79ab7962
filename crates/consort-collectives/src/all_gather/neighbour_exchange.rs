//! All-gather by neighbour exchange: neighbours exchange the blocks that they received last.
//!
//! Source: Chen, Zhang, Zhang and Yuan 2005, "Performance evaluation of allgather algorithms on
//! terascale Linux cluster with fast Ethernet".
//!
//! Protocol, for `P` even (`protocols/exchange`):
//! 1. each PE exchanges its block with its partner, the PE with the same `r / 2`;
//! 2. in rounds 1 to `P / 2 - 1` it exchanges two blocks, alternately with its neighbour on the
//!    other side and with its partner: first the blocks of its own pair, then those that it
//!    received in the round before.
//!
//! Cost: `P / 2` consecutive transfers, `P - 1` blocks. Every PE communicates only with its
//! neighbours, and half as often as around a ring.

use consort_fabric::{CallSpec, Candidate, MachineModel, Query, Rank, Span};

use crate::{
    Algorithm, PlanError, Setting,
    protocols::{
        exchange::{self, Buffers, OnReceive, Round, Rounds},
        in_rounds::InRounds,
    },
};

#[derive(Hash)]
pub struct NeighbourExchange;

fn rounds(setting: &Setting) -> Option<Rounds> {
    let Setting { rank, call: CallSpec { pes, bytes, .. }, .. } = *setting;
    let buffers = Buffers::new(setting, pes / 2, 2 * bytes, 1, 2)?;
    let partner = Rank(rank.0 ^ 1);
    let is_first = rank < partner;
    let other = rank.plus(if is_first { pes as usize - 1 } else { 1 }, pes as usize);
    let (own, pairs) = (setting.source_block(0), pes / 2);
    let pair = |pair: u32| {
        let Span { at, .. } = setting.target_block(2 * pair);
        vec![Span::target(at, 2 * bytes)]
    };
    // This PE's pair, and the pair whose blocks it receives in a round. From each side, blocks of
    // nearer pairs arrive first.
    let mine = rank.0 / 2;
    let news = |round: u32| {
        let (far, is_from_other) = (round.div_ceil(2) % pairs, round % 2 == 1);
        let is_after = is_first != is_from_other;
        (mine + if is_after { far } else { pairs - far }) % pairs
    };
    let first_round = Round::at(0, 0).send(partner, [own]);
    let theirs = [setting.target_block(partner.0)];
    let mut all = vec![first_round.receive(partner, theirs, OnReceive::Stores)];
    let mut first = buffers.chunks(bytes);
    for round in 1..pairs {
        let (peer, credit) = if round % 2 == 1 { (other, 1) } else { (partner, 0) };
        let given = pair(if round == 1 { mine } else { news(round - 1) });
        let exchange = Round::at(first, credit).send(peer, given);
        all.push(exchange.receive(peer, pair(news(round)), OnReceive::Stores));
        first += buffers.chunks(2 * bytes);
    }
    Round::copy_first(&mut all, setting.target_block(rank.0), own);
    Some(Rounds::new(setting, &buffers, all))
}

impl InRounds for NeighbourExchange {
    const NAME: &'static str = "neighbour_exchange";

    fn rounds(setting: &Setting, _: &Candidate) -> Result<Rounds, PlanError> {
        if !setting.call.pes.is_multiple_of(2) {
            return Err(Self::incapable(format!("{} PEs cannot be paired", setting.call.pes)));
        }
        rounds(setting).ok_or(Self::incapable("the inbox is too small"))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (bytes, pairs) = (query.bytes as f64, f64::from(query.pes / 2));
        let rounds = [(1.0, bytes), (pairs - 1.0, 2.0 * bytes)];
        exchange::own_copy_ns(query, model) + exchange::cost_ns(query, model, rounds)
    }
}
