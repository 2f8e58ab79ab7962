//! Flat barrier: everyone tells PE 0, and PE 0 tells everyone.
//!
//! The k-nomial barrier on a tree of one level. Source: Nishtala and Yelick 2009, section 2.2.
//!
//! Cost: `2 (P - 1)` messages, all of them PE 0's; two transfers on the critical path.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query};

use super::knomial::{self, Knomial, Schedule};
use crate::{Algorithm, Parameter, PlanError, Setting, patterns::tree::Shape};

/// See the head of this file.
#[derive(Debug)]
pub struct Flat;

impl Algorithm for Flat {
    const NAME: &'static str = "flat";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        Ok(Schedule::new(setting, Shape::Flat))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        knomial::cost_ns(Shape::Flat, query, model)
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, schedule: &Schedule) -> impl Future<Output = Op> {
        Knomial::run(f, schedule)
    }
}
