//! Direct scan: each PE combines from the buffers of all PEs before it.
//!
//! Idea: as in the reduction `direct`, a contribution needs no copy, and no PE waits for another's
//! result. With few PEs the call takes as long as its last PE, whose work is that of a reduction's
//! root (the flat tree of Nishtala and Yelick 2009, section 4).
//!
//! Protocol (`protocols/exposed`):
//! 1. each PE exposes its source to all PEs after it;
//! 2. each combines, a piece at a time, the contributions of all PEs before it, and its own if the
//!    scan is inclusive, in the order of the ranks;
//! 3. each leaves when no peer reads its source any more.
//!
//! Cost: `P - 1` passes over a block at the last PE, `P (P - 1) / 2` exposed buffers. In symmetric
//! memory without mode Mine only the passes.

use consort_fabric::{
    CallSpec, Candidate, Collective, MachineModel, Messages, Op, OperatorClass, Query, Rank,
    Rendezvous, Span,
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
    /// The length of a piece, in bytes.
    piece: usize,
    class: OperatorClass,
    /// How many PEs' contributions this PE combines.
    inputs: u32,
    exposed: Exposed,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "piece_bytes", values: &[16384, 1 << 20], range: (1, 1 << 30) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let wanted = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        let Setting {
            rank: Rank(rank),
            call: CallSpec { pes, bytes, element_bytes, class: operator, .. },
            ..
        } = *setting;
        let element = element_bytes.max(1);
        let piece = (wanted / element).max(1) * element;
        let is_inclusive = setting.call.collective == Collective::Scan;
        let exposed = Exposed::new(setting, Span::source(0, bytes), (rank + 1..pes).map(Rank))
            .ok_or(Self::incapable("the fabric cannot expose buffers"))?;
        let inputs = rank + u32::from(is_inclusive);
        Ok(Schedule { bytes, piece, class: operator, inputs, exposed })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let piece = candidate.parameter("piece_bytes").unwrap_or(16384) as f64;
        // From the second pass on, a long piece is no longer in the core's nearest caches.
        let again = if piece > 65536.0 { (others - 1.0) * bytes / model.copy_gbps } else { 0.0 };
        let each = model.get_ns + model.overhead_ns;
        let pieces = (bytes / piece).ceil() * each * others;
        // All PEs read PE 0's source first; on average half of the others read a PE's source.
        let work = others * model.pulled_ns(bytes, others / 2.0) + again + pieces;
        // `work` is that of the last PE. On average PEs do half of it, so a core does half of it
        // for each of its PEs, but the call takes no less than the last PE.
        let turns = model.pes_a_core(query.pes) / 2.0;
        Exposed::cost_ns(query, model) + work * turns.max(1.0)
    }

    #[inline(always)]
    async fn run<F: Messages + Rendezvous>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, piece, class, inputs, ref exposed } = *schedule;
        exposed.expose(f).await?;
        let remotes = exposed.attach_all(f, inputs).await?;
        for at in (0..bytes).step_by(piece) {
            let sum = Span::target(at, piece.min(bytes - at));
            let own = Span::source(at, sum.bytes);
            combine_in_order(f, &remotes, own, sum, class).await?;
        }
        exposed.detach_all(f, remotes).await?;
        exposed.await_detached(f).await
    }
}
