//! Direct scatter: everyone copies its block from the root's buffer.
//!
//! Idea: as in the broadcast `direct`, the rendezvous get of the GASNet collectives (Nishtala and
//! Yelick 2009, section 2): between threads a block needs no copy in between.
//!
//! Protocol:
//! 1. the root lends its source to each PE (loan 0), and copies its own block meanwhile;
//! 2. each gets its block, and gives the loan back;
//! 3. the root leaves when all is given back.
//!
//! Cost: `P - 1` copies of a block side by side, two transfers on the critical path.

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query, Rank, Span};

use crate::{Algorithm, Direction, Parameter, PlanError, Setting};

/// See the head of this file.
#[derive(Debug)]
pub struct Direct;

/// What a PE does.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    root: Rank,
    /// Of a block.
    bytes: usize,
}

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const DIRECTION: Direction = Direction::Down;
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        if !setting.capabilities.lending {
            return Err(Self::incapable("the fabric cannot lend buffers"));
        }
        Ok(Schedule { root: setting.root, bytes: setting.bytes })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let copies = (f64::from(query.pes) - 1.0) / f64::from(model.cores.min(query.pes).max(1));
        let readers = f64::from(model.cores.min(query.pes)) - 1.0;
        let copy = model.pulled_ns(query.bytes as f64, readers) * copies.max(1.0);
        let loans = 2.0 * (f64::from(query.pes) - 2.0).max(0.0) * model.next_line_ns;
        model.hops_ns(3.0, query.pes) + loans + copy
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { root, bytes } = *schedule;
        let me = f.rank();
        let (mine, own) = (me.index() * bytes, Span::target(0, bytes));
        if me != root {
            let data = f.borrow(root, 0).await?;
            f.get(&data, mine, own).await?;
            return f.give_back(data).await;
        }
        let all = Span::source(0, f.size() as usize * bytes);
        for peer in (0..f.size()).map(Rank).filter(|&peer| peer != me) {
            f.lend(peer, 0, all).await?;
        }
        f.copy(own, Span::source(mine, bytes)).await?;
        f.reclaim().await
    }
}
