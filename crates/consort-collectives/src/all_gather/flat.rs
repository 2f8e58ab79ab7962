//! Flat all-gather: everyone sends to everyone.
//!
//! Source: the spreading algorithm of Bruck et al. 1997 in one round of as many ports as there are
//! PEs; as in the all-reduce `flat`.
//!
//! Protocol (`patterns/rounds`): send the own block to PE `r + d`, and receive block `r - d`, for
//! each distance `d`: first send all and then receive all, where the inbox has a place for all.
//!
//! Cost: one transfer, `P - 1` messages a PE.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    patterns::rounds::{self, Buffers, Keep, Program, Round},
};

/// See the head of this file.
#[derive(Debug)]
pub struct Flat;

fn program(setting: &Setting) -> Option<Program> {
    let Setting { rank, pes, bytes, .. } = *setting;
    let buffers = Buffers::new(setting, pes - 1, bytes, 1, pes - 1)?;
    let own = setting.source_block(0);
    let round = |far: u32| {
        let (to, from) = (rank.plus(far.into(), pes), rank.plus(u64::from(pes - far), pes));
        let received = (from, vec![setting.target_block(from.0)], Keep::Stores);
        let first = (far - 1) * buffers.chunks(bytes);
        Round::alike(first, far - 1, Some((to, vec![own])), Some(received))
    };
    let mut all = buffers.at_once(setting, (1..pes).map(round).collect());
    Round::copy_first(&mut all, setting.target_block(rank.0), own);
    Some(Program::new(setting, &buffers, all))
}

impl Algorithm for Flat {
    const NAME: &'static str = "flat";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Program;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Program, PlanError> {
        Self::check_names(candidate)?;
        program(setting).ok_or(Self::incapable("the inbox is too small"))
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
