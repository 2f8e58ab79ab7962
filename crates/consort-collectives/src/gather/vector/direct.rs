//! Direct vector gather: every PE copies its block into the root's buffer.
//!
//! Idea: the reverse of the vector scatter `direct`, with puts instead of gets. The copies are
//! concurrent (the flat topology of Nishtala and Yelick 2009, section 2.2, one-sided).
//!
//! Protocol (`protocols/vector_blocks`):
//! 1. the root exposes to each other PE the place for its block, and copies its own block;
//! 2. each puts its block, and waits until the put is complete;
//! 3. the root leaves when all its exposures are detached.
//!
//! Cost: `P - 1` concurrent copies, two transfers on the critical path.

use std::future::Future;

use consort_fabric::{Candidate, MachineModel, Op, Query, Rank, Rendezvous};

use crate::{Algorithm, Direction, Parameter, PlanError, Setting, protocols::vector_blocks};

#[derive(Hash)]
pub struct Direct;

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const DIRECTION: Direction = Direction::Up;
    const ROOT_ACCESS_IS_UNORDERED: bool = true;
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Rank;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Rank, PlanError> {
        Self::check_names(candidate)?;
        Self::need_exposures(setting)?;
        Ok(setting.call.root)
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        vector_blocks::cost_ns(query, 1.0, model)
    }

    #[inline(always)]
    fn run<F: Rendezvous>(f: &F, &root: &Rank) -> impl Future<Output = Op> {
        vector_blocks::all_to_one(f, root)
    }
}
