//! Direct vector scatter: every PE copies its block from the root's buffer.
//!
//! Idea: between threads a block needs no intermediate copy. This is the rendezvous get of the
//! GASNet collectives (Nishtala, Zheng, Hargrove and Yelick 2011, section 3.3.2), from the root,
//! with one exposed buffer per block.
//!
//! Protocol (`protocols/vector_blocks`):
//! 1. the root exposes each other PE's block to it, and copies its own block;
//! 2. each gets its block;
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
    const DIRECTION: Direction = Direction::Down;
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
        vector_blocks::one_to_all(f, root)
    }
}
