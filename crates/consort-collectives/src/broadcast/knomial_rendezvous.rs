//! Broadcast down a k-nomial tree by rendezvous: children get from their parents' buffers.
//!
//! Idea: a PE exposes its data, its children get it, and signal when they have it (Nishtala, Zheng,
//! Hargrove and Yelick 2011, section 3.3.2). So a sender need not know a receiver's address, and
//! messages need no memory. The trees are those of Nishtala and Yelick 2009, section 2.2; `direct`
//! is the same in one level.
//!
//! Protocol:
//! 1. attach the parent's buffer (exposure 0), get the data into the target, detach;
//! 2. expose the data to each child, beginning with the last one, which has the largest subtree;
//! 3. wait until all children have detached it.
//!
//! Cost: `P - 1` gets; on each level of the tree, a signal, a get and a reply.

use consort_fabric::{Candidate, MachineModel, Op, Query, Rank, Rendezvous, Span, SyncModes};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    trees::{KnomialOfBlocks, Tree},
};

#[derive(Hash)]
pub struct KnomialRendezvous;

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    bytes: usize,
    parent: Option<Rank>,
    children: Box<[Rank]>,
}

impl Algorithm for KnomialRendezvous {
    const NAME: &'static str = "knomial_rendezvous";
    const DIRECTION: Direction = Direction::Down;
    const PARAMETERS: &'static [Parameter] = KnomialOfBlocks::PARAMETERS;
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check(candidate)?;
        Self::need_exposures(setting)?;
        let (shape, _) = KnomialOfBlocks::of(candidate);
        let node = shape.node(setting.rank, setting.call.root, setting.call.pes);
        Ok(Schedule {
            bytes: setting.call.bytes,
            parent: node.parent.map(|(parent, _)| parent),
            children: node.children.into_iter().rev().collect(),
        })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (shape, _) = KnomialOfBlocks::of(candidate);
        let (fan, depth) = (f64::from(shape.fan(query.pes)), f64::from(shape.depth(query.pes)));
        let copy = model.pulled_ns(query.bytes as f64, fan) * model.pes_a_core(query.pes);
        let exposures = 2.0 * fan * model.next_line_ns;
        // Each level takes a signal that the buffer is exposed and the get. The end takes a signal
        // that it is detached, and one hop to the next call.
        let level = model.hops_ns(1.0, query.pes) + exposures + copy;
        let end = model.hops_ns(2.0, query.pes);
        if query.sync == SyncModes::LOOSE { level + end } else { depth * level + end }
    }

    #[inline(always)]
    async fn run<F: Rendezvous>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, parent, ref children } = *schedule;
        let mut data = Span::source(0, bytes);
        if let Some(parent) = parent {
            data = Span::target(0, bytes);
            let remote = f.attach(parent, 0).await?;
            f.get(&remote, 0, data).await?;
            f.detach(remote).await?;
        }
        for &child in children {
            f.expose(child, 0, data).await?;
        }
        f.await_detached().await
    }
}
