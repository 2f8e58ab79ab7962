//! Flat exchange: everyone sends to everyone at once.
//!
//! Source: the flat exchange of Nishtala, Zheng, Hargrove and Yelick 2011, section 3.4; the
//! index operation of Bruck et al. 1997 in one round of as many ports as there are PEs.
//!
//! Protocol (`patterns/rounds`): send block `r + d` to PE `r + d`, and receive from PE `r - d`, for
//! each distance `d`: first send all and then receive all, where the inbox has a place for all.
//!
//! Cost: one transfer, `P - 1` messages a PE. Where the inbox has no place for all, and where a
//! send lasts until it is received, `pairwise` does the same.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query};

use super::pairwise::{round, with_own};
use crate::{
    Algorithm, Parameter, PlanError, Setting,
    patterns::rounds::{self, Buffers, Program},
};

/// See the head of this file.
#[derive(Debug)]
pub struct Flat;

impl Algorithm for Flat {
    const NAME: &'static str = "flat";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Program;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Program, PlanError> {
        Self::check_names(candidate)?;
        let Setting { rank, pes, bytes, .. } = *setting;
        if !setting.capabilities.buffered {
            return Err(Self::incapable("the fabric's sends wait for their receivers"));
        }
        let buffers = Buffers::new(setting, pes - 1, bytes, 1, pes - 1)
            .filter(Buffers::hold_all)
            .ok_or(Self::incapable("the messages do not fit the inbox"))?;
        let with = |far: u32| {
            let (to, from) = (rank.plus(far.into(), pes), rank.plus(u64::from(pes - far), pes));
            round(setting, &buffers, far - 1, to, from)
        };
        let all = buffers.at_once(setting, (1..pes).map(with).collect());
        Ok(Program::new(setting, &buffers, with_own(setting, all)))
    }

    fn steps(program: &Program) -> u64 {
        program.steps()
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (bytes, others) = (query.bytes as f64, f64::from(query.pes) - 1.0);
        bytes / model.copy_gbps + rounds::cost_at_once_ns(query, model, others, bytes)
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, program: &Program) -> impl Future<Output = Op> {
        rounds::run(f, program)
    }
}
