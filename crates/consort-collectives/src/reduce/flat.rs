//! Flat reduction: everyone sends to the root, which combines.
//!
//! Source: Nishtala and Yelick 2009, section 4. Messages and their protocol are those of all trees
//! (`lines`); here the tree has one level.
//!
//! Cost: `P - 1` messages and combinations, all of them the root's; one transfer on the critical
//! path.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query};

use super::lines::{self, Schedule};
use crate::{Algorithm, Direction, Parameter, PlanError, Setting, patterns::tree::Shape};

/// See the head of this file.
#[derive(Debug)]
pub struct Flat;

impl Algorithm for Flat {
    const NAME: &'static str = "flat";
    const DIRECTION: Direction = Direction::Up;
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let (shape, chunk_bytes) = (Shape::Flat, usize::MAX);
        Schedule::new(setting, shape, chunk_bytes).ok_or(Self::incapable("the inbox is too small"))
    }

    fn steps(schedule: &Schedule) -> u64 {
        schedule.steps()
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let _ = candidate;
        lines::cost_ns(Shape::Flat, usize::MAX, query, model)
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, schedule: &Schedule) -> impl Future<Output = Op> {
        lines::run(f, schedule)
    }
}
