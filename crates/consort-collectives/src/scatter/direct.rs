//! Direct scatter: every PE copies its block from the root's buffer.
//!
//! Idea: between threads a block needs no intermediate copy. As in the broadcast `direct`, this is
//! the rendezvous get of the GASNet collectives (Nishtala, Zheng, Hargrove and Yelick 2011, section
//! 3.3.2).
//!
//! Protocol (`protocols/rendezvous`):
//! 1. the root exposes its source to all others, and copies its own block;
//! 2. each gets its block;
//! 3. the root waits until all have detached its source.
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
    const DIRECTION: Direction = Direction::Down;
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
        let (all, own) = (Span::source(0, f.size() as usize * bytes), Span::target(0, bytes));
        let mine = me.index() * bytes;
        if me != root {
            let data = access.attach(f, root, all).await?;
            f.get(&data, mine, own).await?;
            return access.detach(f, root, data).await;
        }
        for peer in others(me, f.size()) {
            access.expose(f, peer, all).await?;
        }
        f.copy(own, Span::source(mine, bytes)).await?;
        access.await_detached(f, others(me, f.size())).await
    }
}
