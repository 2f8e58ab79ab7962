//! Flat all-gather: every PE sends its block to every other PE.
//!
//! Source: the spreading algorithm of Bruck et al. 1997, in one round with as many ports as there
//! are PEs; see the all-reduce `flat`.
//!
//! Protocol (`protocols/exchange`): for each distance `d`, send this PE's block to PE `r + d`, and
//! receive block `r - d`. All sends come before all receives if the inbox has room for all messages
//! and sends do not wait for their receivers.
//!
//! Cost: one transfer, `P - 1` messages per PE.

use consort_fabric::{CallSpec, Candidate, MachineModel, Query};

use crate::{
    Algorithm, PlanError, Setting,
    protocols::{
        exchange::{self, Buffers, OnReceive, Round, Rounds},
        in_rounds::InRounds,
    },
};

#[derive(Hash)]
pub struct Flat;

fn rounds(setting: &Setting) -> Option<Rounds> {
    let Setting { rank, call: CallSpec { pes, bytes, .. }, .. } = *setting;
    let buffers = Buffers::new(setting, pes - 1, bytes, 1, pes - 1)?;
    let own = setting.source_block(0);
    let round = |far: u32| {
        let [to, from] = [far, pes - far].map(|far| rank.plus(far as usize, pes as usize));
        Round::at((far - 1) * buffers.chunks(bytes), far - 1).send(to, [own]).receive(
            from,
            [setting.target_block(from.0)],
            OnReceive::Stores,
        )
    };
    let mut all = buffers.at_once(setting, (1..pes).map(round).collect());
    Round::copy_first(&mut all, setting.target_block(rank.0), own);
    Some(Rounds::new(setting, &buffers, all))
}

impl InRounds for Flat {
    const NAME: &'static str = "flat";

    fn rounds(setting: &Setting, _: &Candidate) -> Result<Rounds, PlanError> {
        rounds(setting).ok_or(Self::incapable("the inbox is too small"))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (bytes, others) = (query.bytes as f64, f64::from(query.pes) - 1.0);
        exchange::own_copy_ns(query, model) + exchange::cost_at_once_ns(query, model, others, bytes)
    }
}
