//! Direct all-reduce: everyone combines from everyone's buffers.
//!
//! Idea: as in the reduction `direct` a contribution needs no copy. What one PE would combine for
//! all, all can combine at once, each for itself, and nothing has to be sent back.
//!
//! Protocol (`patterns/shown`):
//! 1. everyone shows its source to everyone;
//! 2. each, a block at a time, combines all contributions in the order of the ranks;
//! 3. each leaves when nobody reads its source any more.
//!
//! Cost: `P - 1` passes over the message on every PE, `P (P - 1)` loans, or in symmetric memory
//! with no mode Mine the passes alone. Of two PEs none can do with less; of more, `shared` divides
//! the work.

use consort_fabric::{Candidate, Fabric, MachineModel, Op, OperatorClass, Query, Span};

use crate::{
    Algorithm, Parameter, PlanError, Setting, patterns::shown::Shown, reduce::combine_in_order,
};

/// See the head of this file.
#[derive(Debug)]
pub struct Direct;

/// What a PE does.
#[derive(Debug)]
pub struct Schedule {
    bytes: usize,
    block: usize,
    class: OperatorClass,
    shown: Shown,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "block_bytes", values: &[16384, 1 << 20], range: (1, 1 << 30) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let wanted = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        let Setting { bytes, element_bytes, operator, .. } = *setting;
        let element = element_bytes.max(1);
        let block = (wanted / element).max(1) * element;
        let shown = Shown::to_all(setting, Span::source(0, bytes))
            .ok_or(Self::incapable("the fabric cannot lend buffers"))?;
        Ok(Schedule { bytes, block, class: operator, shown })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let block = candidate.parameter("block_bytes").unwrap_or(16384) as f64;
        // From the second pass on a long block has left the caches nearest to the core.
        let again = if block > 65536.0 { (others - 1.0) * bytes / model.copy_gbps } else { 0.0 };
        let blocks = (bytes / block).ceil() * model.overhead_ns * others;
        let work = others * model.pulled_ns(bytes, others) + again + blocks;
        let turns = f64::from(query.pes) / f64::from(model.cores.min(query.pes).max(1));
        Shown::cost_ns(query, model) + work * turns
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, block, class, ref shown } = *schedule;
        shown.show(f).await?;
        let leases = shown.open_all(f, f.size()).await?;
        for at in (0..bytes).step_by(block) {
            let sum = Span::target(at, block.min(bytes - at));
            combine_in_order(f, &leases, at, sum, class).await?;
        }
        shown.close_all(f, leases).await?;
        shown.end(f).await
    }
}
