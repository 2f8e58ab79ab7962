//! Ring all-reduce: each block goes round once to be combined, and once more to be known.
//!
//! Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
//! workstations"; a reduce-scatter and an all-gather around a ring. For operators that commute.
//!
//! Protocol (`patterns/rounds`), for the data divided into `P` blocks of whole elements, the last
//! ones shorter or empty:
//! 1. in rounds 0 to `P - 2` send block `r - i` to PE `r + 1`, receive block `r - i - 1` from PE
//!    `r - 1`, and combine it with the own one; then PE `r` has block `r + 1`;
//! 2. in as many rounds pass on blocks from `r + 1` down in the same way, and keep what comes.
//!
//! Cost: `2 (P - 1)` transfers one after the other, `2 (P - 1) / P` of the data through a PE, which
//! is the least possible; every PE talks to its neighbours alone.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, OperatorClass, Query, Span};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    patterns::rounds::{self, Buffers, Keep, Program, Round},
};

/// See the head of this file.
#[derive(Debug)]
pub struct Ring;

fn program(setting: &Setting) -> Option<Program> {
    let Setting { rank, pes, bytes, element_bytes, .. } = *setting;
    let element = element_bytes.max(1);
    let each = bytes.div_ceil(element).div_ceil(pes as usize) * element;
    let buffers = Buffers::new(setting, 2 * (pes - 1), each, 1, 1)?;
    // The block `before` before this PE's own one, in the source; it is as long on every PE.
    let block = |before: u32| {
        let index = rank.plus(u64::from(2 * pes - before), pes).index();
        let at = (index * each).min(bytes);
        Span::source(at, each.min(bytes - at))
    };
    let (next, last) = (rank.plus(1, pes), rank.plus(u64::from(pes - 1), pes));
    let kept = |span: Span| Span::target(span.at, span.bytes);
    let round = |index: u32| {
        let (given, taken) = (block(index), block(index + 1));
        let (given, keep) = match index {
            0 => (given, Keep::After(vec![taken])),
            _ if index + 1 < pes => (kept(given), Keep::After(vec![taken])),
            _ => (kept(given), Keep::Stores),
        };
        let sent = (given.bytes > 0).then(|| (next, vec![given]));
        let received = (taken.bytes > 0).then(|| (last, vec![kept(taken)], keep));
        Round::alike(index * buffers.chunks(each), 0, sent, received)
    };
    let rounds: Vec<Round> = (0..2 * (pes - 1)).map(round).collect();
    Some(Program::new(setting, &buffers, rounds))
}

impl Algorithm for Ring {
    const NAME: &'static str = "ring";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Program;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Program, PlanError> {
        Self::check_names(candidate)?;
        if setting.operator != OperatorClass::Commutative {
            return Err(Self::incapable("it needs a commutative operator"));
        }
        if setting.pes < 2 || setting.bytes / setting.element_bytes.max(1) < setting.pes as usize {
            return Err(Self::incapable("it needs an element a PE, and two PEs"));
        }
        program(setting).ok_or(Self::incapable("the inbox is too small"))
    }

    fn steps(program: &Program) -> u64 {
        program.steps()
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (pes, bytes) = (f64::from(query.pes), query.bytes as f64);
        let turns = pes / f64::from(model.cores.min(query.pes).max(1));
        let combined = bytes * (pes - 1.0) / pes / model.copy_gbps * turns;
        combined + rounds::cost_ns(query, model, [(2.0 * (pes - 1.0), bytes / pes)])
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, program: &Program) -> impl Future<Output = Op> {
        rounds::run(f, program)
    }
}
