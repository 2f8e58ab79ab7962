//! Direct all-gather: everyone copies everyone's block from where it lies.
//!
//! Idea: between threads a block needs no copy in between: the rendezvous get of the GASNet
//! collectives (Nishtala and Yelick 2009, section 2), from everyone.
//!
//! Protocol (`patterns/access`):
//! 1. everyone shows its source to everyone, and copies its own block;
//! 2. each gets the others' blocks, from the PE after it on, so that no two read one PE at a time;
//! 3. each waits until all are done with its source.
//!
//! Cost: `P - 1` copies of a block a PE, two transfers, `P (P - 1)` loans.

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query, Rank, Span};

use crate::{Algorithm, Direction, Parameter, PlanError, Setting, patterns::access::Access};

/// See the head of this file.
#[derive(Debug)]
pub struct Direct;

/// What a PE does.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    access: Access,
    /// Of a block.
    bytes: usize,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let access = Access::new(setting, Self::DIRECTION);
        let access = access.ok_or(Self::incapable("the fabric cannot lend buffers"))?;
        Ok(Schedule { access, bytes: setting.bytes })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let work = others * (bytes / model.pull_gbps + model.overhead_ns) + bytes / model.copy_gbps;
        let turns = f64::from(query.pes) / f64::from(model.cores.min(query.pes).max(1));
        Access::cost_ns(query, Direction::Neither, model) + work * turns
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { access, bytes } = *schedule;
        let (me, pes) = (f.rank(), f.size());
        let others = || (1..pes).map(|distance| me.plus(distance.into(), pes));
        let (own, block) =
            (Span::source(0, bytes), |rank: Rank| Span::target(rank.index() * bytes, bytes));
        for peer in others() {
            access.show(f, peer, own).await?;
        }
        f.copy(block(me), own).await?;
        for peer in others() {
            if let Some(data) = access.take(f, peer, own).await? {
                f.get(&data, 0, block(peer)).await?;
                access.end(f, peer, data).await?;
            }
        }
        access.settle(f, others()).await
    }
}
