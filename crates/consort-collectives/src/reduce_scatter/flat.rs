//! Flat reduce-scatter: every PE sends to each other PE its contribution to the block of that PE,
//! and combines the contributions that it receives.
//!
//! Idea: as in the all-reduce `flat`, nothing is faster than one transfer for short blocks among
//! few PEs (an all-to-all is a dissemination of radix `P`; Nishtala, Zheng, Hargrove and Yelick
//! 2011, section 3.4).
//!
//! Protocol (`protocols/exchange`):
//! 1. send to every other PE the contribution to its block;
//! 2. combine this PE's contribution and the others' in rank order; if the operator is commutative,
//!    this PE's comes first.
//!
//! Cost: one transfer, `P - 1` messages per PE.

use consort_fabric::{CallSpec, Candidate, MachineModel, OperatorClass, Query, Rank};

use crate::{
    Algorithm, PlanError, Setting,
    protocols::in_rounds::InRounds,
    protocols::{
        exchange::{self, Buffers, OnReceive, Round, Rounds},
        exposed::others,
    },
};

#[derive(Hash)]
pub struct Flat;

fn rounds(setting: &Setting, buffers: &Buffers) -> Rounds {
    let Setting { rank: me, call: CallSpec { pes, .. }, .. } = *setting;
    let (own, result) = (setting.source_block(me.0), setting.target_block(0));
    // A PE numbers the messages that it receives by the ranks of the other PEs, without a gap.
    let round = |from: Rank, to: Rank| {
        let number = if from < to { from.0 } else { from.0 - 1 };
        Round::at(number * buffers.chunks(setting.call.bytes), 0)
    };
    let send = |to: Rank| round(me, to).send(to, [setting.source_block(to.0)]);
    let mut all: Vec<Round> = others(me, pes).map(send).collect();
    let commutes = setting.call.class == OperatorClass::Commutative;
    let mut so_far = (commutes || me.0 == 0).then_some(own);
    for from in (0..pes).map(Rank).filter(|&from| from != me) {
        let keep = match so_far {
            Some(left) => OnReceive::After(vec![left]),
            None if me.0 == 1 => OnReceive::Before(vec![own]),
            None => OnReceive::Stores,
        };
        let mut receive = round(from, me).receive(from, [result], keep);
        if !commutes && me.0 > 1 && from.0 + 1 == me.0 {
            receive = receive.combine(result, result, own);
        }
        all.push(receive);
        so_far = Some(result);
    }
    if pes == 1 {
        Round::copy_first(&mut all, result, own);
    }
    Rounds::new(setting, buffers, all)
}

impl InRounds for Flat {
    const NAME: &'static str = "flat";

    fn rounds(setting: &Setting, _: &Candidate) -> Result<Rounds, PlanError> {
        if !setting.capabilities.buffered {
            return Err(Self::incapable("the fabric's sends wait for their receivers"));
        }
        let buffers = Buffers::new(setting, setting.call.pes - 1, setting.call.bytes, 1, 1)
            .filter(Buffers::hold_all)
            .ok_or(Self::incapable("the messages do not fit the inbox or the scratch memory"))?;
        Ok(rounds(setting, &buffers))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (bytes, others) = (query.bytes as f64, f64::from(query.pes) - 1.0);
        let turns = model.pes_a_core(query.pes);
        let combined = others * bytes / model.copy_gbps * turns;
        combined + exchange::cost_at_once_ns(query, model, others, bytes)
    }
}
