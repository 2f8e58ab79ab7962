//! Pipelined reduction along a chain, in chunks.
//!
//! Idea: each PE combines what its one child sends with its own contribution and passes it on,
//! chunk by chunk, so that all PEs work at once. The chain is the best tree for a row of Loose
//! reductions, since no PE has more than one child. Source: Nishtala and Yelick 2009, section 4.1.
//! Messages and their protocol are those of all trees (`lines`).
//!
//! Cost: `P - 1` chunks to fill the pipeline, then one message.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query};

use super::lines::{self, Schedule};
use crate::{Algorithm, Direction, Parameter, PlanError, Setting, patterns::tree::Shape};

/// See the head of this file.
#[derive(Debug)]
pub struct Chain;

impl Algorithm for Chain {
    const NAME: &'static str = "chain";
    const DIRECTION: Direction = Direction::Up;
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "chunk_bytes",
        values: &[1024, 2048, 4096, 7056],
        range: (1, 1 << 30),
    }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let chunk_bytes = Self::parameter(candidate, 0)?;
        let (shape, chunk_bytes) =
            (Shape::Knomial(1), usize::try_from(chunk_bytes).unwrap_or(usize::MAX));
        Schedule::new(setting, shape, chunk_bytes).ok_or(Self::incapable("the inbox is too small"))
    }

    fn steps(schedule: &Schedule) -> u64 {
        schedule.steps()
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let chunk_bytes =
            candidate.parameter("chunk_bytes").and_then(|bytes| usize::try_from(bytes).ok());
        lines::cost_ns(Shape::Knomial(1), chunk_bytes.unwrap_or(4096), query, model)
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, schedule: &Schedule) -> impl Future<Output = Op> {
        lines::run(f, schedule)
    }
}
