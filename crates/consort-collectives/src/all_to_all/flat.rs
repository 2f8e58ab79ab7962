//! Flat all-to-all: every PE sends to every other PE at once.
//!
//! Source: the flat exchange of Nishtala, Zheng, Hargrove and Yelick 2011, section 3.4; the index
//! operation of Bruck et al. 1997, in one round with as many ports as there are PEs.
//!
//! Protocol (`protocols/exchange`): for each distance `d`, send block `r + d` to PE `r + d`, and
//! receive a block from PE `r - d`. All sends come before all receives.
//!
//! Cost: one transfer, `P - 1` messages per PE. It refuses calls if the inbox has no room for all
//! messages, or if a send waits for its receiver; `pairwise` serves these calls.

use consort_fabric::{CallSpec, Candidate, MachineModel, Query};

use super::pairwise::{round, with_own};
use crate::{
    Algorithm, PlanError, Setting,
    protocols::{
        exchange::{self, Buffers, Rounds},
        in_rounds::InRounds,
    },
};

#[derive(Hash)]
pub struct Flat;

impl InRounds for Flat {
    const NAME: &'static str = "flat";

    fn rounds(setting: &Setting, _: &Candidate) -> Result<Rounds, PlanError> {
        let Setting { rank, call: CallSpec { pes, bytes, .. }, .. } = *setting;
        if !setting.capabilities.buffered {
            return Err(Self::incapable("the fabric's sends wait for their receivers"));
        }
        let buffers = Buffers::new(setting, pes - 1, bytes, 1, pes - 1)
            .filter(Buffers::hold_all)
            .ok_or(Self::incapable("the messages do not fit the inbox"))?;
        let with = |far: u32| {
            let [to, from] = [far, pes - far].map(|far| rank.plus(far as usize, pes as usize));
            round(setting, &buffers, far - 1, to, from)
        };
        let all = buffers.at_once(setting, (1..pes).map(with).collect());
        Ok(Rounds::new(setting, &buffers, with_own(setting, all)))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (bytes, others) = (query.bytes as f64, f64::from(query.pes) - 1.0);
        exchange::own_copy_ns(query, model) + exchange::cost_at_once_ns(query, model, others, bytes)
    }
}
