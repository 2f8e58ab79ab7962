//! Scatter-allgather: each PE receives a slice of the message, and then all PEs gather all slices.
//!
//! Idea: the inner PEs of a tree send a long message several times. Here no PE sends more than
//! about twice the length of the message. Source: Barnett, Shuler, van de Geijn, Gupta, Payne and
//! Watts 1994; as in `RCCE_comm`, Petrović 2015, section 3.3.2.
//!
//! Protocol, with ranks relative to the root; slice `i` belongs to PE `i`:
//! 1. scatter by recursive halving (`rank_math/halving`): receive the slices of a range of PEs,
//!    then send the second half of the rest until only this PE's slice is left;
//! 2. allgather around a ring, in `P - 1` rounds (`rank_math/slices`): in round `r` PE `i` sends
//!    slice `i + r` to its left neighbour, PE `i - 1`, and receives slice `i + 1 + r` from its
//!    right one. The root receives nothing, because it has all slices.
//!
//! Messages travel in chunks over two buffers (`protocols/stream`). Even PEs send first and odd PEs
//! receive first, chunk by chunk. So if a send waits for its receiver, half of the PEs send at a
//! time instead of one after the other. PEs never wait in a cycle, because the root waits for no
//! other PE's chunk.
//!
//! Cost: `log2 P` transfers for the scatter and `P - 1` for the ring; `2 (P - 1) / P` of the
//! message through a PE.

use std::ops::Range;

use consort_fabric::{CallSpec, Candidate, Channel, MachineModel, Messages, Op, Query, Span, Step};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    protocols::stream::{Chunks, Edge},
    rank_math::{
        halving::{Half, half, rounds},
        slices::Slices,
    },
};

#[derive(Hash)]
pub struct ScatterAllgather;

/// A message of the scatter: its edge, its chunks, and its offset in the data.
#[derive(Hash)]
struct ScatterMessage {
    edge: Edge,
    chunks: Chunks,
    at: usize,
}

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    slices: Slices,
    /// The chunks of a slice.
    chunks: Chunks,
    pes: u32,
    steps: Step,
    received: Option<ScatterMessage>,
    sent: Box<[ScatterMessage]>,
    /// The edge to the left neighbour; `None` if that is the root.
    left: Option<Edge>,
    /// The edge from the right neighbour; `None` at the root.
    right: Option<Edge>,
}

impl Schedule {
    /// Returns the schedule, or `None` if the inbox is too small or there are too many chunks.
    fn new(setting: &Setting) -> Option<Self> {
        let Setting { rank, call: CallSpec { root, pes, bytes, .. }, .. } = *setting;
        // Channels: one for each child's signals that it has taken a chunk of the scatter; one for
        // the same signals in the ring; two buffers for the scatter; two for the ring.
        let words = rounds(pes);
        let room = setting.lines().checked_sub(words + 1)? / 2;
        (room >= 2).then_some(())?;
        let most = Channel::capacity_of(room as usize / 2);
        let divided = |bytes: usize| Chunks::new(bytes, 1, most, room);
        let slices = Slices::new(bytes, rank, root, pes);
        let handed = |peer, index, range: Range<u32>| {
            let (at, bytes) = slices.of(&range);
            let edge =
                Edge { peer, data: setting.channel(words + 1), taken: setting.channel(index) };
            Some(ScatterMessage { edge, chunks: divided(bytes)?, at })
        };
        let Half { parent, range, children } = half(rank, root, pes);
        let received = match parent {
            Some((parent, index)) => Some(handed(parent, index, range)?),
            None => None,
        };
        let sent = (0..).zip(children).map(|(index, (child, range))| handed(child, index, range));
        let ring = |peer| Edge {
            peer,
            data: setting.channel(words + 1 + room),
            taken: setting.channel(words),
        };
        let chunks = divided(slices.longest())?;
        let around = chunks.count().checked_mul(pes - 1)?;
        Some(Self {
            slices,
            chunks,
            pes,
            // The longest message of the scatter is the root's first one.
            steps: around.max(divided(bytes)?.count()),
            received,
            sent: sent.collect::<Option<_>>()?,
            left: slices.left(rank).map(ring),
            right: slices.right(rank).map(ring),
        })
    }

    /// Returns the offset and length of chunk `step` of those that go around the ring, beginning
    /// with the slice `after` nodes after this PE's.
    #[inline(always)]
    fn around(&self, after: u32, step: Step) -> (usize, usize) {
        let (round, index) = (step / self.chunks.count(), step % self.chunks.count());
        let (at, bytes) = self.chunks.range(index);
        self.slices.part(after + round, at, bytes)
    }
}

impl Algorithm for ScatterAllgather {
    const NAME: &'static str = "scatter_allgather";
    const DIRECTION: Direction = Direction::Down;
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        Schedule::new(setting).ok_or(Self::incapable("the inbox is too small"))
    }

    fn steps(schedule: &Schedule) -> u64 {
        u64::from(schedule.steps)
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (pes, bytes) = (f64::from(query.pes), query.bytes as f64);
        let slice = 2.0 * model.lines_ns(bytes / pes);
        let hops = f64::from(rounds(query.pes)) + pes - 1.0;
        let work = model.lines_ns(bytes) + (pes - 1.0) * slice;
        let turns = model.pes_a_core(query.pes);
        model.hops_ns(hops, query.pes) + work * turns
    }

    #[inline(always)]
    async fn run<F: Messages>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { slices, chunks, pes, received, sent, left, right, .. } = schedule;
        if let Some(ScatterMessage { edge, chunks, at }) = received {
            for index in 0..chunks.count() {
                let (from, bytes) = chunks.range(index);
                let chunk = Span::target(at + from, bytes);
                f.receive(edge.buffer(chunks, index), index, chunk).await?;
                if chunks.is_awaited(index) {
                    f.signal(edge.peer, edge.taken, index).await?;
                }
            }
        }
        let have = if right.is_none() { Span::source } else { Span::target };
        for ScatterMessage { edge, chunks, at } in sent {
            for index in 0..chunks.count() {
                let (from, bytes) = chunks.range(index);
                if let Some(earlier) = chunks.awaits(index) {
                    f.wait(edge.taken, earlier).await?;
                }
                f.send(edge.peer, edge.buffer(chunks, index), index, have(at + from, bytes))
                    .await?;
            }
        }
        let steps = chunks.count() * (pes - 1);
        let sends_first = slices.sends_first();
        for step in 0..steps {
            for sends in [sends_first, !sends_first] {
                match (left, right) {
                    (Some(left), _) if sends => {
                        if let Some(earlier) = step.checked_sub(2) {
                            f.wait(left.taken, earlier).await?;
                        }
                        let (at, bytes) = schedule.around(0, step);
                        let buffer = left.buffer(chunks, step);
                        f.send(left.peer, buffer, step, have(at, bytes)).await?;
                    }
                    (_, Some(right)) if !sends => {
                        let (at, bytes) = schedule.around(1, step);
                        let chunk = Span::target(at, bytes);
                        f.receive(right.buffer(chunks, step), step, chunk).await?;
                        if step + 2 < steps {
                            f.signal(right.peer, right.taken, step).await?;
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
