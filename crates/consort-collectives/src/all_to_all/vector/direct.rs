//! Direct vector all-to-all: everyone copies everyone's block for it from where it lies.
//!
//! Idea: between threads a block needs no copy in between: the rendezvous get of the GASNet
//! collectives (Nishtala and Yelick 2009, section 2), from everyone, one exposed buffer a block.
//!
//! Protocol (`protocols/vector_blocks`):
//! 1. everyone exposes to everyone its block, and copies its own;
//! 2. each gets the others' blocks, from the PE after it on, so that no two read one PE at a time;
//! 3. each leaves when all that it exposed is detached.
//!
//! Cost: `P - 1` copies a PE, two transfers, `P (P - 1)` exposed buffers.

use std::future::Future;

use consort_fabric::{Candidate, MachineModel, Op, Query, Rendezvous};

use crate::{Algorithm, Parameter, PlanError, Setting, protocols::vector_blocks};

#[derive(Debug)]
pub struct Direct;

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = ();

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<(), PlanError> {
        Self::check_names(candidate)?;
        let serves = vector_blocks::serves(&setting.capabilities);
        serves.then_some(()).ok_or(Self::incapable("the fabric cannot expose buffers"))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        vector_blocks::cost_ns(query, f64::from(query.pes) - 1.0, model)
    }

    #[inline(always)]
    fn run<F: Rendezvous>(f: &F, (): &()) -> impl Future<Output = Op> {
        vector_blocks::all_to_all(f)
    }
}
