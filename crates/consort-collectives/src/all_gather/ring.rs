//! All-gather around a ring: each PE forwards the block that it received last.
//!
//! Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication
//! operations in MPICH", section 4.1.
//!
//! Protocol, in rounds 0 to `P - 2` (`protocols/exchange`): send block `r - i` to PE `r + 1`,
//! receive block `r - i - 1` from PE `r - 1`.
//!
//! Cost: `P - 1` consecutive transfers. Each block goes over every edge except one, and every PE
//! communicates only with its neighbours.

use consort_fabric::{CallSpec, Candidate, MachineModel, Query};

use crate::{
    Algorithm, PlanError, Setting,
    protocols::{
        exchange::{self, Buffers, OnReceive, Round, Rounds},
        in_rounds::InRounds,
    },
};

#[derive(Hash)]
pub struct Ring;

fn rounds(setting: &Setting) -> Option<Rounds> {
    let Setting { rank, call: CallSpec { pes, bytes, .. }, .. } = *setting;
    let buffers = Buffers::new(setting, pes - 1, bytes, 1, 1)?;
    let own = setting.source_block(0);
    let before = |distance: u32| rank.plus((pes - distance) as usize, pes as usize);
    let block = |distance: u32| setting.target_block(before(distance).0);
    let (left, right) = (before(1), rank.plus(1, pes as usize));
    let round = |i: u32| {
        let given = if i == 0 { own } else { block(i) };
        let round = Round::at(i * buffers.chunks(bytes), 0).send(right, [given]);
        round.receive(left, [block(i + 1)], OnReceive::Stores)
    };
    let mut all: Vec<Round> = (0..pes - 1).map(round).collect();
    Round::copy_first(&mut all, block(0), own);
    Some(Rounds::new(setting, &buffers, all))
}

impl InRounds for Ring {
    const NAME: &'static str = "ring";

    fn rounds(setting: &Setting, _: &Candidate) -> Result<Rounds, PlanError> {
        rounds(setting).ok_or(Self::incapable("the inbox is too small"))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let bytes = query.bytes as f64;
        let rounds = [(f64::from(query.pes) - 1.0, bytes)];
        exchange::own_copy_ns(query, model) + exchange::cost_ns(query, model, rounds)
    }
}
