//! Direct all-to-all: every PE copies its block from every other PE's source.
//!
//! Idea: between threads a block needs no intermediate copy. This is the rendezvous get of the
//! GASNet collectives (Nishtala, Zheng, Hargrove and Yelick 2011, section 3.3.2), from every PE.
//!
//! Protocol (`protocols/exposed`):
//! 1. each PE exposes its source to all others, and copies its own block;
//! 2. each gets its blocks from the others, beginning with the next rank, so that no two PEs begin
//!    with the same one;
//! 3. each leaves when no peer reads its source any more.
//!
//! Cost: `P - 1` copies of a block per PE, two transfers and `P (P - 1)` exposed buffers. In
//! symmetric memory without mode Mine, only the copies.

use consort_fabric::{Candidate, MachineModel, Messages, Op, Query, Rendezvous};

use crate::{Algorithm, Parameter, PlanError, Setting, protocols::exposed::ExposedBlocks};

#[derive(Hash)]
pub struct Direct;

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = ExposedBlocks;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<ExposedBlocks, PlanError> {
        Self::check_names(candidate)?;
        let blocks = ExposedBlocks::new(setting, setting.call.pes);
        blocks.ok_or(Self::incapable("the fabric cannot expose buffers"))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        ExposedBlocks::cost_ns(query, model)
    }

    #[inline(always)]
    fn run<F: Messages + Rendezvous>(f: &F, blocks: &ExposedBlocks) -> impl Future<Output = Op> {
        blocks.get(f, f.rank().0)
    }
}
