//! Direct reduce-scatter: every PE combines its block from all PEs' buffers.
//!
//! Idea: the first half of the all-reduce `shared` (Rabenseifner 2004, "Optimization of collective
//! reduction operations", without messages). One PE combines each block, so contributions need not
//! be copied.
//!
//! Protocol (`protocols/exposed`):
//! 1. each PE exposes its source to all others;
//! 2. each combines its block of all sources in rank order, a part of it at a time;
//! 3. each leaves when no peer reads its source any more.
//!
//! Cost: `P - 1` passes over a block per PE, `P (P - 1)` exposed buffers. In symmetric memory
//! without mode Mine, only the passes.

use consort_fabric::{CallSpec, Candidate, MachineModel, Messages, Op, Query, Rendezvous, Span};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    protocols::{
        direct::{self, Schedule},
        exposed::Exposed,
    },
};

#[derive(Hash)]
pub struct Direct;

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] = direct::PARAMETERS;
    const REVISION: u32 = 2;
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        let CallSpec { pes, bytes, .. } = setting.call;
        let exposed = Exposed::to_all(setting, Span::source(0, pes as usize * bytes));
        let first = setting.rank.index() * bytes;
        Schedule::new::<Self>(setting, candidate, (first, pes), exposed)
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        // All PEs combine in rank order, so all of them read the same PE's source at once.
        let work = direct::work_ns(query, candidate, model, f64::from(query.pes) - 1.0);
        Exposed::cost_ns(query, model) + work * model.pes_a_core(query.pes)
    }

    #[inline(always)]
    fn run<F: Messages + Rendezvous>(f: &F, schedule: &Schedule) -> impl Future<Output = Op> {
        schedule.run(f)
    }
}
