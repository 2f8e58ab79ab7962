//! Direct all-gather: everyone copies everyone's block from where it lies.
//!
//! Idea: between threads a block needs no copy in between: the rendezvous get of the GASNet
//! collectives (Nishtala and Yelick 2009, section 2), from everyone.
//!
//! Protocol:
//! 1. everyone lends its source to everyone (loan 0), and copies its own block;
//! 2. each gets the others' blocks, from the PE after it on, so that no two read one PE at a time;
//! 3. each gives back, and waits until its own is back.
//!
//! Cost: `P - 1` copies of a block a PE, two transfers, `P (P - 1)` loans.

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query, Rank, Span};

use crate::{Algorithm, Parameter, PlanError, Setting};

/// See the head of this file.
#[derive(Debug)]
pub struct Direct;

/// What a PE does.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Of a block.
    bytes: usize,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        if !setting.capabilities.lending {
            return Err(Self::incapable("the fabric cannot lend buffers"));
        }
        Ok(Schedule { bytes: setting.bytes })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let work = others * (bytes / model.pull_gbps + model.overhead_ns) + bytes / model.copy_gbps;
        let turns = f64::from(query.pes) / f64::from(model.cores.min(query.pes).max(1));
        let loans = 2.0 * (others - 1.0).max(0.0) * model.next_line_ns;
        model.hops_ns(3.0, query.pes) + loans + work * turns
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes } = *schedule;
        let (me, pes) = (f.rank(), f.size());
        let others = || (1..pes).map(|distance| me.plus(distance.into(), pes));
        let lent = Span::source(0, bytes);
        for peer in others() {
            f.lend(peer, 0, lent).await?;
        }
        let at = 0;
        let block = |rank: Rank| Span::target(rank.index() * bytes, bytes);
        f.copy(block(me), Span::source(0, bytes)).await?;
        for peer in others() {
            let data = f.borrow(peer, 0).await?;
            f.get(&data, at, block(peer)).await?;
            f.give_back(data).await?;
        }
        f.reclaim().await
    }
}
