//! Direct reduce-scatter: everyone combines its block from everyone's buffers.
//!
//! Idea: the first half of the all-reduce `shared` (Rabenseifner 2004, "Optimization of collective
//! reduction operations", without messages): a block that one PE combines need not be copied.
//!
//! Protocol:
//! 1. everyone lends its source to everyone (loan 0);
//! 2. each, a piece at a time, combines its block of all sources in the order of the ranks;
//! 3. each gives back, and waits until its own is back.
//!
//! Cost: `P - 1` passes over a block a PE, `P (P - 1)` loans.

use consort_fabric::{Candidate, Fabric, MachineModel, Op, OperatorClass, Query, Rank, Span};

use crate::{Algorithm, Parameter, PlanError, Setting, reduce::combine_in_order};

/// See the head of this file.
#[derive(Debug)]
pub struct Direct;

/// What a PE does.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Of a block.
    bytes: usize,
    /// Of a piece, in bytes.
    piece: usize,
    class: OperatorClass,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "piece_bytes", values: &[16384, 1 << 20], range: (1, 1 << 30) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let wanted = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        if !setting.capabilities.lending {
            return Err(Self::incapable("the fabric cannot lend buffers"));
        }
        let element = setting.element_bytes.max(1);
        let piece = (wanted / element).max(1) * element;
        Ok(Schedule { bytes: setting.bytes, piece, class: setting.operator })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let piece = candidate.parameter("piece_bytes").unwrap_or(16384) as f64;
        // From the second pass on a long piece has left the caches nearest to the core.
        let again = if piece > 65536.0 { (others - 1.0) * bytes / model.copy_gbps } else { 0.0 };
        let pieces = (bytes / piece).ceil() * model.overhead_ns * others;
        let work = others * bytes / model.pull_gbps + again + pieces;
        let turns = f64::from(query.pes) / f64::from(model.cores.min(query.pes).max(1));
        let loans = 2.0 * (others - 1.0).max(0.0) * model.next_line_ns;
        model.hops_ns(3.0, query.pes) + loans + work * turns
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, piece, class } = *schedule;
        let (me, pes) = (f.rank(), f.size());
        for peer in (0..pes).map(Rank).filter(|&peer| peer != me) {
            f.lend(peer, 0, Span::source(0, pes as usize * bytes)).await?;
        }
        let mut leases = Vec::with_capacity(pes as usize);
        for peer in (0..pes).map(Rank) {
            leases.push(if peer == me { None } else { Some(f.borrow(peer, 0).await?) });
        }
        for at in (0..bytes).step_by(piece) {
            let sum = Span::target(at, piece.min(bytes - at));
            combine_in_order(f, &leases, me.index() * bytes + at, sum, class).await?;
        }
        for lease in leases.into_iter().flatten() {
            f.give_back(lease).await?;
        }
        f.reclaim().await
    }
}
