//! Direct all-to-all: everyone copies everyone's block for it from where it lies.
//!
//! Idea: between threads a block needs no copy in between: the rendezvous get of the GASNet
//! collectives (Nishtala and Yelick 2009, section 2), from everyone.
//!
//! Protocol (`patterns/exposed`):
//! 1. everyone shows its source to everyone, and copies its own block;
//! 2. each gets the others' blocks, from the PE after it on, so that no two read one PE at a time;
//! 3. each leaves when nobody reads its source any more.
//!
//! Cost: `P - 1` copies of a block a PE, two transfers, `P (P - 1)` exposed buffers. In symmetric
//! memory with no mode Mine the copies alone.

use consort_fabric::{CallSpec, Candidate, MachineModel, Messages, Op, Query, Rendezvous, Span};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    protocols::exposed::{Exposed, others},
};

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
        let Setting { call: CallSpec { pes, bytes, .. }, .. } = *setting;
        let exposed = Exposed::to_all(setting, Span::source(0, pes as usize * bytes))
            .ok_or(Self::incapable("the fabric cannot expose buffers"))?;
        Ok(Schedule { bytes, exposed })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let work = others * (bytes / model.pull_gbps + model.overhead_ns) + bytes / model.copy_gbps;
        let turns = model.pes_a_core(query.pes);
        Exposed::cost_ns(query, model) + work * turns
    }

    #[inline(always)]
    async fn run<F: Messages + Rendezvous>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, ref exposed } = *schedule;
        let me = f.rank();
        let at = me.index() * bytes;
        exposed.expose(f).await?;
        f.copy(Span::target(at, bytes), Span::source(at, bytes)).await?;
        for peer in others(me, f.size()) {
            let data = exposed.attach(f, peer).await?;
            f.get(&data, at, Span::target(peer.index() * bytes, bytes)).await?;
            exposed.detach(f, peer, data).await?;
        }
        exposed.await_detached(f).await
    }
}
