//! Direct scan: each PE combines from the buffers of all PEs before it.
//!
//! Idea: as in the reduction `direct`, a contribution needs no copy, and no PE waits for another's
//! result. With few PEs, the call takes as long as its last PE, which does the work of a
//! reduction's root (the flat tree of Nishtala and Yelick 2009, section 4).
//!
//! Protocol (`protocols/exposed`):
//! 1. each PE exposes its source to all PEs after it;
//! 2. each combines the contributions of all PEs before it, and its own if the scan is inclusive,
//!    in rank order, a block at a time;
//! 3. each leaves when no peer reads its source any more.
//!
//! Cost: `P - 1` passes over a block at the last PE, `P (P - 1) / 2` exposed buffers. In symmetric
//! memory without mode Mine, only the passes.

use consort_fabric::{
    CallSpec, Candidate, Collective, MachineModel, Messages, Op, Query, Rank, Rendezvous, Span,
};

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
    const REVISION: u32 = 2;
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        let Setting { rank: Rank(rank), call: CallSpec { pes, bytes, collective, .. }, .. } =
            *setting;
        let later = (rank + 1..pes).map(Rank);
        let exposed = Exposed::new(setting, Span::source(0, bytes), later);
        let inputs = rank + u32::from(collective == Collective::Scan);
        Schedule::new::<Self>(setting, candidate, (0, inputs), exposed)
    }

    fn may_replace_source(setting: &Setting) -> bool {
        combines_own_first(setting)
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        // All PEs read PE 0's source first; on average half of the others read a PE's source.
        let readers = (f64::from(query.pes) - 1.0) / 2.0;
        let work = direct::work_ns(query, candidate, model, readers);
        // `work` is that of the last PE. On average PEs do half of it, so a core does half of it
        // for each of its PEs, but the call takes at least as long as the last PE.
        let turns = model.pes_a_core(query.pes) / 2.0;
        Exposed::cost_ns(query, model) + work * turns.max(1.0)
    }

    #[inline(always)]
    fn run<F: Messages + Rendezvous>(f: &F, schedule: &Schedule) -> impl Future<Output = Op> {
        schedule.run(f)
    }
}
