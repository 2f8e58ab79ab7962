//! Direct all-gather: everyone copies everyone's block from where it lies.
//!
//! Idea: between threads a block needs no copy in between: the rendezvous get of the GASNet
//! collectives (Nishtala and Yelick 2009, section 2), from everyone.
//!
//! Protocol (`protocols/exposed`):
//! 1. everyone exposes its source to everyone, and copies its own block;
//! 2. each gets the others' blocks, from the PE after it on, so that no two read one PE at a time;
//! 3. each waits until all are done with its source.
//!
//! Cost: `P - 1` copies of a block a PE, two transfers, `P (P - 1)` exposed buffers.

use consort_fabric::{Candidate, MachineModel, Messages, Op, Query, Rendezvous, Span};

use crate::{Algorithm, Parameter, PlanError, Setting, protocols::exposed::Exposed};

#[derive(Debug)]
pub struct Direct;

/// What a PE does.
#[derive(Debug)]
pub struct Schedule {
    /// Of a block.
    bytes: usize,
    exposed: Exposed,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let bytes = setting.call.bytes;
        let exposed = Exposed::to_all(setting, Span::source(0, bytes))
            .ok_or(Self::incapable("the fabric cannot expose buffers"))?;
        Ok(Schedule { bytes, exposed })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        Exposed::cost_of_blocks_ns(query, model)
    }

    #[inline(always)]
    async fn run<F: Messages + Rendezvous>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, ref exposed } = *schedule;
        exposed.get_blocks(f, 0, bytes).await
    }
}
