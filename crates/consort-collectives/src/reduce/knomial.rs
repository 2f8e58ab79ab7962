//! Reduction up a k-nomial tree.
//!
//! Idea: a PE combines what its children's subtrees have come to with its own contribution,
//! smallest subtree first, and sends the result to its parent. Radix 1 is the chain, 2 the binomial
//! tree. Source: Nishtala and Yelick 2009, sections 2.2 and 4.1. Messages and their protocol are
//! those of all trees (`lines`).
//!
//! Cost: `P - 1` messages; `(k - 1) log_k P` combinations at the root.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query};

use super::lines::{self, Schedule};
use crate::{Algorithm, Direction, Parameter, PlanError, Setting, patterns::tree::Shape};

/// See the head of this file.
#[derive(Debug)]
pub struct Knomial;

impl Algorithm for Knomial {
    const NAME: &'static str = "knomial";
    const DIRECTION: Direction = Direction::Up;
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[1, 2, 4, 8, 16], range: (1, 1 << 16) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let radix = u32::try_from(Self::parameter(candidate, 0)?).unwrap_or(u32::MAX);
        let (shape, chunk_bytes) = (Shape::Knomial(radix), usize::MAX);
        Schedule::new(setting, shape, chunk_bytes).ok_or(Self::incapable("the inbox is too small"))
    }

    fn steps(schedule: &Schedule) -> u64 {
        schedule.steps()
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let radix = candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok());
        lines::cost_ns(Shape::Knomial(radix.unwrap_or(2)), usize::MAX, query, model)
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, schedule: &Schedule) -> impl Future<Output = Op> {
        lines::run(f, schedule)
    }
}
