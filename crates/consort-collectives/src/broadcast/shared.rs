//! Shared broadcast: the root and each receiver share the work of copying.
//!
//! Idea: a core that pulls a buffer which another core has just written is limited by the line
//! transfers. Two cores, one pulling and one pushing, copy faster. The receiver takes chunks from
//! the front and the root from the back until they meet. So a late or slow PE takes fewer chunks,
//! and in successive calls each PE finds in its cache the data that it copied before. Sources:
//! Nishtala and Yelick 2009, section 1, for one-sided get and put; Chase and Lev 2005 for taking
//! from two ends.
//!
//! Protocol:
//! 1. the root exposes its source to each PE, and each exposes its target to the root (exposure 0);
//! 2. both count their chunks in the two halves of one counter at the receiver. Until the halves
//!    meet, the receiver gets the next chunk from the front, and the root puts the next one from
//!    the back. A PE that has taken half of the chunks yields once: the other PE may still compute,
//!    and its cache has the data of the other half;
//! 3. both detach their buffers, the root after a fence. When its target is detached, the receiver
//!    resets the counter to 0.
//!
//! Cost: about half the copy of `direct` for two PEs; the root serves its receivers one by one.

use consort_fabric::{
    CallSpec, Candidate, Counters, Local, MachineModel, Op, Query, Rank, Rendezvous, Span,
};

use crate::{Algorithm, Direction, Parameter, PlanError, Setting};

#[derive(Hash)]
pub struct Shared;

/// One PE's schedule.
#[derive(Clone, Copy, Hash)]
pub struct Schedule {
    root: Rank,
    bytes: usize,
    chunk: usize,
    counter: u32,
}

/// The root's increment of the counter for a chunk; the receiver's is 1.
const FROM_BACK: u64 = 1 << 32;

impl Schedule {
    /// Returns the offset and length of the receiver's next chunk when the counter was `before`.
    fn front(&self, before: u64) -> Option<(usize, usize)> {
        let (front, back) = (before % FROM_BACK, before / FROM_BACK);
        self.chunk(front).filter(|_| front + back < self.chunks())
    }

    /// Returns the offset and length of the root's next chunk when the counter was `before`.
    fn back(&self, before: u64) -> Option<(usize, usize)> {
        let (front, back) = (before % FROM_BACK, before / FROM_BACK);
        if front + back >= self.chunks() {
            return None;
        }
        self.chunk(self.chunks() - 1 - back)
    }

    /// Yields once after half of the chunks, so that the other PE may take the rest.
    async fn yield_after<F: Local>(&self, f: &F, taken: u64) -> Op {
        if taken == self.chunks().div_ceil(2) { f.yield_now().await } else { Ok(()) }
    }

    fn chunks(&self) -> u64 {
        self.bytes.div_ceil(self.chunk) as u64
    }

    fn chunk(&self, index: u64) -> Option<(usize, usize)> {
        let at = usize::try_from(index).ok()?.checked_mul(self.chunk)?;
        (at < self.bytes).then(|| (at, self.chunk.min(self.bytes - at)))
    }
}

impl Algorithm for Shared {
    const NAME: &'static str = "shared";
    const DIRECTION: Direction = Direction::Down;
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "chunk_bytes",
        values: &[16384, 65536, 262_144],
        range: (64, 1 << 30),
    }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        Self::need_counters(setting)?;
        Self::need_exposures(setting)?;
        let chunk = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        let Setting { counter, call: CallSpec { root, bytes, .. }, .. } = *setting;
        if bytes <= chunk {
            return Err(Self::incapable("there is only one chunk"));
        }
        if bytes.div_ceil(chunk) >= 1 << 31 {
            return Err(Self::incapable("there are more chunks than half a counter can count"));
        }
        Ok(Schedule { root, bytes, chunk, counter })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (pes, bytes) = (f64::from(query.pes), query.bytes as f64);
        let chunk = candidate.parameter("chunk_bytes").unwrap_or(32768) as f64;
        let cores = model.cores_of(query.pes);
        let copies = ((pes - 1.0) / cores).max(pes / (pes + 2.0));
        let tickets = bytes / chunk * model.transfer_ns / 2.0;
        model.hops_ns(4.0, query.pes) + bytes / model.pull_gbps * copies + tickets
    }

    #[inline(always)]
    async fn run<F: Rendezvous + Counters>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { root, bytes, counter, .. } = *schedule;
        let me = f.rank();
        if me != root {
            f.expose(root, 0, Span::target(0, bytes)).await?;
            let source = f.attach(root, 0).await?;
            let mut taken = 0;
            while let Some((at, bytes)) = schedule.front(f.count(me, counter, 1).await?) {
                f.get(&source, at, Span::target(at, bytes)).await?;
                taken += 1;
                schedule.yield_after(f, taken).await?;
            }
            f.detach(source).await?;
            f.await_detached().await?;
            // No PE counts any more, so this subtracts the whole count.
            let counted = f.count(me, counter, 0).await?;
            f.count(me, counter, counted.wrapping_neg()).await?;
            return Ok(());
        }
        let others = (0..f.size()).map(Rank).filter(|&rank| rank != me);
        for peer in others.clone() {
            f.expose(peer, 0, Span::source(0, bytes)).await?;
        }
        for peer in others {
            let target = f.attach(peer, 0).await?;
            let mut taken = 0;
            while let Some((at, bytes)) = schedule.back(f.count(peer, counter, FROM_BACK).await?) {
                f.put(&target, at, Span::source(at, bytes)).await?;
                taken += 1;
                schedule.yield_after(f, taken).await?;
            }
            f.fence().await?;
            f.detach(target).await?;
        }
        f.await_detached().await
    }
}
