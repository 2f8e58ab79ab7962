//! Direct gather: everyone copies its block into the root's buffer.
//!
//! Idea: the mirror image of the scatter `direct`, a put where that is a get: the copies go on side
//! by side (the flat tree of Nishtala and Yelick 2009, section 2, one-sided).
//!
//! Protocol (`patterns/access`):
//! 1. the root shows its target to everyone, and copies its own block;
//! 2. each puts its block, and waits until it is there;
//! 3. the root waits until all are done.
//!
//! Cost: `P - 1` copies of a block side by side, two transfers on the critical path.

use consort_fabric::{Candidate, MachineModel, Messages, Op, Query, Rank, Rendezvous, Span};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    protocols::{exposed::others, rendezvous::Access},
};

#[derive(Debug)]
pub struct Direct;

/// What a PE does.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    access: Access,
    root: Rank,
    /// Of a block.
    bytes: usize,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const DIRECTION: Direction = Direction::Up;
    const ROOT_ACTS_APART: bool = true;
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let access = Access::new(setting, Self::DIRECTION);
        let access = access.ok_or(Self::incapable("the fabric cannot expose buffers"))?;
        Ok(Schedule { access, root: setting.call.root, bytes: setting.call.bytes })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let copies = (f64::from(query.pes) - 1.0) / model.cores_of(query.pes);
        let writers = f64::from(model.cores.min(query.pes)) - 1.0;
        let copy = model.pulled_ns(query.bytes as f64, writers) * copies.max(1.0);
        Access::cost_ns(query, Self::DIRECTION, model) + copy
    }

    #[inline(always)]
    async fn run<F: Messages + Rendezvous>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { access, root, bytes } = *schedule;
        let me = f.rank();
        let (all, own) = (Span::target(0, f.size() as usize * bytes), Span::source(0, bytes));
        let mine = me.index() * bytes;
        if me != root {
            let result = access.attach(f, root, all).await?;
            f.put(&result, mine, own).await?;
            // What says so may be a barrier that counts, which a fence does not hold back.
            f.quiet().await?;
            return access.detach(f, root, result).await;
        }
        for peer in others(me, f.size()) {
            access.expose(f, peer, all).await?;
        }
        f.copy(Span::target(mine, bytes), own).await?;
        access.await_detached(f, others(me, f.size())).await
    }
}
