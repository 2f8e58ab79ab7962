//! Direct vector all-to-all: every PE copies its block from every other PE's source.
//!
//! Idea: between threads a block needs no intermediate copy. This is the rendezvous get of the
//! GASNet collectives (Nishtala, Zheng, Hargrove and Yelick 2011, section 3.3.2), from every PE,
//! with one exposed buffer per block.
//!
//! Protocol (`protocols/vector_blocks`):
//! 1. each PE exposes each other PE's block to it, and copies its own block;
//! 2. each gets its blocks from the others, beginning with the next rank, so that no two PEs begin
//!    with the same one;
//! 3. each leaves when all its exposures are detached.
//!
//! Cost: `P - 1` copies per PE, two transfers, `P (P - 1)` exposed buffers.

use std::future::Future;

use consort_fabric::{Candidate, MachineModel, Op, Query, Rendezvous};

use crate::{Algorithm, Parameter, PlanError, Setting, protocols::vector_blocks};

#[derive(Hash)]
pub struct Direct;

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = ();

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<(), PlanError> {
        Self::check_names(candidate)?;
        Self::need_exposures(setting)
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        vector_blocks::cost_ns(query, f64::from(query.pes) - 1.0, model)
    }

    #[inline(always)]
    fn run<F: Rendezvous>(f: &F, (): &()) -> impl Future<Output = Op> {
        vector_blocks::all_to_all(f)
    }
}
