//! Pairwise exchange: in each round a PE sends to one PE and receives from one PE.
//!
//! Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication
//! operations in MPICH", section 4.3, for long messages.
//!
//! Protocol, in rounds 1 to `P - 1` (`protocols/exchange`): exchange blocks with PE `r xor i` if
//! `P` is a power of two; otherwise send to PE `r + i` and receive from PE `r - i`.
//!
//! Cost: `P - 1` consecutive transfers, `P - 1` blocks. In a round no two PEs send to the same PE.

use consort_fabric::{CallSpec, Candidate, MachineModel, Query, Rank};

use crate::{
    Algorithm, PlanError, Setting,
    protocols::{
        exchange::{self, Buffers, OnReceive, Round, Rounds},
        in_rounds::InRounds,
    },
};

#[derive(Hash)]
pub struct Pairwise;

/// Returns round `index`, which sends a block to `to` and receives one from `from`.
pub(super) fn round(
    setting: &Setting,
    buffers: &Buffers,
    index: u32,
    to: Rank,
    from: Rank,
) -> Round {
    Round::at(index * buffers.chunks(setting.call.bytes), index)
        .send(to, [setting.source_block(to.0)])
        .receive(from, [setting.target_block(from.0)], OnReceive::Stores)
}

/// Adds the copy of this PE's own block to the rounds.
pub(super) fn with_own(setting: &Setting, mut rounds: Vec<Round>) -> Vec<Round> {
    let Rank(me) = setting.rank;
    Round::copy_first(&mut rounds, setting.target_block(me), setting.source_block(me));
    rounds
}

impl InRounds for Pairwise {
    const NAME: &'static str = "pairwise";

    fn rounds(setting: &Setting, _: &Candidate) -> Result<Rounds, PlanError> {
        let Setting { rank, call: CallSpec { pes, bytes, .. }, .. } = *setting;
        let buffers = Buffers::new(setting, pes - 1, bytes, 1, pes - 1)
            .ok_or(Self::incapable("the inbox is too small"))?;
        let with = |index: u32| {
            let [to, from] = if pes.is_power_of_two() {
                [Rank(rank.0 ^ index); 2]
            } else {
                [index, pes - index].map(|distance| rank.plus(distance as usize, pes as usize))
            };
            round(setting, &buffers, index - 1, to, from)
        };
        let all = with_own(setting, (1..pes).map(with).collect());
        Ok(Rounds::new(setting, &buffers, all))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let bytes = query.bytes as f64;
        let rounds = [(f64::from(query.pes) - 1.0, bytes)];
        exchange::own_copy_ns(query, model) + exchange::cost_ns(query, model, rounds)
    }
}
