//! Direct all-reduce: every PE combines the contributions from all PEs' buffers.
//!
//! Idea: as in the reduction `direct`, contributions are not copied. All PEs do the work of a
//! reduction's root at the same time, so no result is sent back.
//!
//! Protocol (`protocols/exposed`):
//! 1. each PE exposes its source to all others;
//! 2. each combines all contributions in rank order, a block at a time;
//! 3. each leaves when no peer reads its source any more.
//!
//! Cost: `P - 1` passes over the message on every PE, and `P (P - 1)` exposed buffers; in symmetric
//! memory without mode Mine, only the passes. For two PEs this work is minimal; for more, `shared`
//! divides it.

use consort_fabric::{CallSpec, Candidate, MachineModel, Messages, Op, Query, Rendezvous, Span};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    protocols::{
        direct::{self, Schedule},
        exposed::Exposed,
    },
    reduce::combines_own_first,
};

#[derive(Hash)]
pub struct Direct;

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] = direct::PARAMETERS;
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        let CallSpec { pes, bytes, .. } = setting.call;
        let exposed = Exposed::to_all(setting, Span::source(0, bytes));
        Schedule::new::<Self>(setting, candidate, (0, pes), exposed)
    }

    fn may_replace_source(setting: &Setting) -> bool {
        combines_own_first(setting)
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let work = direct::work_ns(query, candidate, model, f64::from(query.pes) - 1.0);
        Exposed::cost_ns(query, model) + work * model.pes_a_core(query.pes)
    }

    #[inline(always)]
    fn run<F: Messages + Rendezvous>(f: &F, schedule: &Schedule) -> impl Future<Output = Op> {
        schedule.run(f)
    }
}
