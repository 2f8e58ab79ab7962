//! Shared broadcast: the root and each receiver divide the copying between them.
//!
//! Idea: a core that pulls a buffer which another has just written is bound by the transfers; two
//! cores that copy, one pulling and one pushing, are faster than one. They take chunks by drawing
//! tickets, so whoever is late or slow takes fewer. One-sided get and put as in Nishtala and Yelick
//! 2009, section 1; drawing chunks is guided by Herlihy and Shavit 2008, chapter 16 (work sharing).
//!
//! Protocol:
//! 1. the root lends its source to each PE, each lends its target to the root (loan 0);
//! 2. both draw tickets from the receiver's counter; chunk `t` is copied by whoever drew `t`: the
//!    receiver gets it, the root puts it;
//! 3. both give back; the receiver, when its target is back, returns the counter to 0.
//!
//! Cost: about half the copy of `direct` for two PEs; the root helps its receivers one by one.

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query, Rank, Span};

use crate::{Algorithm, Direction, Parameter, PlanError, Setting};

/// See the head of this file.
#[derive(Debug)]
pub struct Shared;

/// What a PE does.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    root: Rank,
    bytes: usize,
    chunk: usize,
    counter: u32,
}

impl Schedule {
    /// Chunk `ticket`, if there is one.
    fn chunk(&self, ticket: u64) -> Option<(usize, usize)> {
        let at = usize::try_from(ticket).ok()?.checked_mul(self.chunk)?;
        (at < self.bytes).then(|| (at, self.chunk.min(self.bytes - at)))
    }

    /// How far the counter has gone when both have drawn a ticket too many.
    fn drawn(&self) -> u64 {
        self.bytes.div_ceil(self.chunk) as u64 + 2
    }
}

impl Algorithm for Shared {
    const NAME: &'static str = "shared";
    const DIRECTION: Direction = Direction::Down;
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "chunk_bytes",
        values: &[8192, 16384, 32768, 65536],
        range: (64, 1 << 30),
    }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        if !setting.capabilities.lending {
            return Err(Self::incapable("the fabric cannot lend buffers"));
        }
        let chunk = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        let Setting { root, bytes, counter, .. } = *setting;
        if bytes <= chunk {
            return Err(Self::incapable("there is only one chunk"));
        }
        Ok(Schedule { root, bytes, chunk, counter })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (pes, bytes) = (f64::from(query.pes), query.bytes as f64);
        let chunk = candidate.parameter("chunk_bytes").unwrap_or(32768) as f64;
        let cores = f64::from(model.cores.min(query.pes).max(1));
        let copies = ((pes - 1.0) / cores).max(pes / (pes + 2.0));
        let tickets = bytes / chunk * model.transfer_ns / 2.0;
        model.hops_ns(4.0, query.pes) + bytes / model.pull_gbps * copies + tickets
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { root, bytes, counter, .. } = *schedule;
        let me = f.rank();
        if me != root {
            f.lend(root, 0, Span::target(0, bytes)).await?;
            let source = f.borrow(root, 0).await?;
            while let Some((at, bytes)) = schedule.chunk(f.count(me, counter, 1).await?) {
                f.get(&source, at, Span::target(at, bytes)).await?;
            }
            f.give_back(source).await?;
            f.reclaim().await?;
            f.count(me, counter, schedule.drawn().wrapping_neg()).await?;
            return Ok(());
        }
        let others = (0..f.size()).map(Rank).filter(|&rank| rank != me);
        for peer in others.clone() {
            f.lend(peer, 0, Span::source(0, bytes)).await?;
        }
        for peer in others {
            let target = f.borrow(peer, 0).await?;
            while let Some((at, bytes)) = schedule.chunk(f.count(peer, counter, 1).await?) {
                f.put(&target, at, Span::source(at, bytes)).await?;
            }
            f.give_back(target).await?;
        }
        f.reclaim().await
    }
}
