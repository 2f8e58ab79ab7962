//! Direct all-reduce: every PE combines the contributions from all PEs' buffers.
//!
//! Idea: as in the reduction `direct`, a contribution needs no copy. All PEs can do at once, each
//! for itself, what one PE would do for all; so nothing has to be sent back.
//!
//! Protocol (`protocols/exposed`):
//! 1. each PE exposes its source to all others;
//! 2. each combines all contributions, a block at a time, in the order of the ranks;
//! 3. each leaves when no peer reads its source any more.
//!
//! Cost: `P - 1` passes over the message on every PE, and `P (P - 1)` exposed buffers; in symmetric
//! memory without mode Mine only the passes. For two PEs this work is minimal; for more, `shared`
//! divides it.

use consort_fabric::{
    CallSpec, Candidate, MachineModel, Messages, Op, OperatorClass, Query, Rendezvous, Span,
};

use crate::{
    Algorithm, Parameter, PlanError, Setting, protocols::exposed::Exposed, reduce::combine_in_order,
};

#[derive(Debug)]
pub struct Direct;

/// One PE's schedule.
#[derive(Debug)]
pub struct Schedule {
    bytes: usize,
    block: usize,
    class: OperatorClass,
    exposed: Exposed,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "block_bytes", values: &[16384, 1 << 20], range: (1, 1 << 30) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let wanted = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        let Setting { call: CallSpec { bytes, element_bytes, class: operator, .. }, .. } = *setting;
        let element = element_bytes.max(1);
        // A larger block than all is all, whatever the parameter.
        let block = ((wanted / element).max(1) * element).min(bytes.max(element));
        let exposed = Exposed::to_all(setting, Span::source(0, bytes))
            .ok_or(Self::incapable("the fabric cannot expose buffers"))?;
        Ok(Schedule { bytes, block, class: operator, exposed })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let block = candidate.parameter("block_bytes").unwrap_or(16384) as f64;
        // From the second pass on, a long block is no longer in the core's nearest caches.
        let again = if block > 65536.0 { (others - 1.0) * bytes / model.copy_gbps } else { 0.0 };
        let each = model.get_ns + model.overhead_ns;
        let blocks = (bytes / block).ceil() * each * others;
        let work = others * model.pulled_ns(bytes, others) + again + blocks;
        let turns = model.pes_a_core(query.pes);
        Exposed::cost_ns(query, model) + work * turns
    }

    #[inline(always)]
    async fn run<F: Messages + Rendezvous>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, block, class, ref exposed } = *schedule;
        exposed.expose(f).await?;
        let remotes = exposed.attach_all(f, f.size()).await?;
        for at in (0..bytes).step_by(block) {
            let sum = Span::target(at, block.min(bytes - at));
            let own = Span::source(at, sum.bytes);
            combine_in_order(f, &remotes, own, sum, class).await?;
        }
        exposed.detach_all(f, remotes).await?;
        exposed.await_detached(f).await
    }
}
