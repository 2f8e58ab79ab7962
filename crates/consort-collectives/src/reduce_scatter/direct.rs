//! Direct reduce-scatter: every PE combines its block from all PEs' buffers.
//!
//! Idea: the first half of the all-reduce `shared` (Rabenseifner 2004, "Optimization of collective
//! reduction operations", without messages): a block that one PE combines need not be copied.
//!
//! Protocol (`protocols/exposed`):
//! 1. each PE exposes its source to all others;
//! 2. each combines its block of all sources, a piece at a time, in the order of the ranks;
//! 3. each leaves when no peer reads its source any more.
//!
//! Cost: `P - 1` passes over a block a PE, `P (P - 1)` exposed buffers. In symmetric memory without
//! mode Mine only the passes.

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
    /// The length of a block, in bytes.
    bytes: usize,
    /// The length of a piece, in bytes.
    piece: usize,
    class: OperatorClass,
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
        let Setting { call: CallSpec { pes, bytes, element_bytes, class: operator, .. }, .. } =
            *setting;
        let element = element_bytes.max(1);
        let piece = (wanted / element).max(1) * element;
        let exposed = Exposed::to_all(setting, Span::source(0, pes as usize * bytes))
            .ok_or(Self::incapable("the fabric cannot expose buffers"))?;
        Ok(Schedule { bytes, piece, class: operator, exposed })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let piece = candidate.parameter("piece_bytes").unwrap_or(16384) as f64;
        // From the second pass on, a long piece is no longer in the core's nearest caches.
        let again = if piece > 65536.0 { (others - 1.0) * bytes / model.copy_gbps } else { 0.0 };
        let each = model.get_ns + model.overhead_ns;
        let pieces = (bytes / piece).ceil() * each * others;
        // All PEs combine in the order of the ranks, so all read one PE's source at a time.
        let work = others * model.pulled_ns(bytes, others) + again + pieces;
        let turns = model.pes_a_core(query.pes);
        Exposed::cost_ns(query, model) + work * turns
    }

    #[inline(always)]
    async fn run<F: Messages + Rendezvous>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, piece, class, ref exposed } = *schedule;
        let first = f.rank().index() * bytes;
        exposed.expose(f).await?;
        let remotes = exposed.attach_all(f, f.size()).await?;
        for at in (0..bytes).step_by(piece) {
            let sum = Span::target(at, piece.min(bytes - at));
            let own = Span::source(first + at, sum.bytes);
            combine_in_order(f, &remotes, own, sum, class).await?;
        }
        exposed.detach_all(f, remotes).await?;
        exposed.await_detached(f).await
    }
}
