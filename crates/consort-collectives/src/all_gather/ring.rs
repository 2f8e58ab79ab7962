//! All-gather around a ring: each PE passes on what it has received last.
//!
//! Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication
//! operations in MPICH", section 4.1.
//!
//! Protocol, in rounds 0 to `P - 2` (`patterns/rounds`): send block `r - i` to PE `r + 1`, receive
//! block `r - i - 1` from PE `r - 1`.
//!
//! Cost: `P - 1` transfers one after the other; each block goes over each edge once, and every PE
//! talks to its neighbours alone.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query, Rank};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    patterns::rounds::{self, Buffers, Keep, Program, Round},
};

/// See the head of this file.
#[derive(Debug)]
pub struct Ring;

fn program(setting: &Setting) -> Option<Program> {
    let Setting { rank, pes, bytes, .. } = *setting;
    let buffers = Buffers::new(setting, pes - 1, bytes, 1, 1)?;
    let before = |distance: u32| rank.plus(u64::from(pes - distance), pes);
    let block = |Rank(from)| setting.target_block(from);
    let own = setting.source_block(0);
    let round = |index: u32| {
        let sent = if index == 0 { own } else { block(before(index)) };
        let sent = (rank.plus(1, pes), vec![sent]);
        let received = (before(1), vec![block(before(index + 1))], Keep::Stores);
        Round::alike(index * buffers.chunks(bytes), 0, Some(sent), Some(received))
    };
    let mut all: Vec<Round> = (0..pes - 1).map(round).collect();
    Round::copy_first(&mut all, block(rank), own);
    Some(Program::new(setting, &buffers, all))
}

impl Algorithm for Ring {
    const NAME: &'static str = "ring";
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
        let bytes = query.bytes as f64;
        let rounds = [(f64::from(query.pes) - 1.0, bytes)];
        bytes / model.copy_gbps + rounds::cost_ns(query, model, rounds)
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, program: &Program) -> impl Future<Output = Op> {
        rounds::run(f, program)
    }
}
