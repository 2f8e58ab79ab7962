//! Direct scan: each PE combines from the buffers of all PEs before it.
//!
//! Idea: as in the reduction `direct` a contribution needs no copy, and what one PE combines no
//! other has to wait for: of few PEs none is faster than the last, which does as much as a
//! reduction's root (the flat tree of Nishtala and Yelick 2009, section 4).
//!
//! Protocol (`patterns/shown`):
//! 1. each PE shows its source to all PEs after it;
//! 2. each, a piece at a time, combines the contributions of all PEs before it, and its own if the
//!    scan is inclusive, in the order of the ranks;
//! 3. each leaves when nobody reads its source any more.
//!
//! Cost: `P - 1` passes over a block at the last PE, `P (P - 1) / 2` loans. In symmetric memory
//! with no mode Mine the passes alone.

use consort_fabric::{
    Candidate, Collective, Fabric, MachineModel, Op, OperatorClass, Query, Rank, Span,
};

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
    /// Of a piece, in bytes.
    piece: usize,
    class: OperatorClass,
    /// How many PEs' contributions are combined.
    inputs: u32,
    shown: Shown,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "piece_bytes", values: &[16384, 1 << 20], range: (1, 1 << 30) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let wanted = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        let Setting { rank: Rank(rank), pes, bytes, element_bytes, operator, .. } = *setting;
        let element = element_bytes.max(1);
        let piece = (wanted / element).max(1) * element;
        let is_inclusive = setting.collective == Collective::Scan;
        let shown = Shown::new(setting, Span::source(0, bytes), (rank + 1..pes).map(Rank))
            .ok_or(Self::incapable("the fabric cannot lend buffers"))?;
        let inputs = rank + u32::from(is_inclusive);
        Ok(Schedule { bytes, piece, class: operator, inputs, shown })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let piece = candidate.parameter("piece_bytes").unwrap_or(16384) as f64;
        // From the second pass on a long piece has left the caches nearest to the core.
        let again = if piece > 65536.0 { (others - 1.0) * bytes / model.copy_gbps } else { 0.0 };
        let pieces = (bytes / piece).ceil() * model.overhead_ns * others;
        let work = others * model.pulled_ns(bytes, 1.0) + again + pieces;
        // The last PE does as much, the others half of that as a rule.
        let turns = f64::from(query.pes) / f64::from(model.cores.min(query.pes).max(1)) / 2.0;
        Shown::cost_ns(query, model) + work * turns.max(1.0)
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, piece, class, inputs, ref shown } = *schedule;
        shown.show(f).await?;
        let leases = shown.open_all(f, inputs).await?;
        for at in (0..bytes).step_by(piece) {
            let sum = Span::target(at, piece.min(bytes - at));
            combine_in_order(f, &leases, at, sum, class).await?;
        }
        shown.close_all(f, leases).await?;
        shown.end(f).await
    }
}
