//! Direct gather: every PE copies its block into the root's buffer.
//!
//! Idea: the reverse of the scatter `direct`, with puts instead of gets. The copies are concurrent
//! (the flat topology of Nishtala and Yelick 2009, section 2.2, one-sided).
//!
//! Protocol (`protocols/rendezvous`):
//! 1. the root exposes its target to all others, and copies its own block;
//! 2. each puts its block, and waits until the put is complete;
//! 3. the root waits until all have detached.
//!
//! Cost: `P - 1` concurrent copies of a block, two transfers on the critical path.

use consort_fabric::{Candidate, MachineModel, Messages, Op, Query, Rendezvous, Span};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    protocols::{exposed::others, rendezvous::RootedCopy},
};

#[derive(Hash)]
pub struct Direct;

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const DIRECTION: Direction = Direction::Up;
    const ROOT_ACCESS_IS_UNORDERED: bool = true;
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = RootedCopy;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<RootedCopy, PlanError> {
        Self::check_names(candidate)?;
        let rooted = RootedCopy::new(setting, Self::DIRECTION);
        rooted.ok_or(Self::incapable("the fabric cannot expose buffers"))
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        RootedCopy::cost_ns(query, Self::DIRECTION, model)
    }

    #[inline(always)]
    async fn run<F: Messages + Rendezvous>(
        f: &F,
        &RootedCopy { access, root, bytes }: &RootedCopy,
    ) -> Op {
        let me = f.rank();
        let (all, own) = (Span::target(0, f.size() as usize * bytes), Span::source(0, bytes));
        let mine = me.index() * bytes;
        if me != root {
            let result = access.attach(f, root, all).await?;
            f.put(&result, mine, own).await?;
            // A counting barrier may signal the completion, and a fence does not order counting.
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
