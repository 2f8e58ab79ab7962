//! The broadcasts of RCCE_comm, by two-sided messages: `two_sided_binomial` for short messages and
//! `two_sided_scatter_allgather` for long ones.
//!
//! Idea: each step consists of pairs of PEs, one of which sends while the other receives. Source:
//! Petrović 2015, sections 3.3.2 and 4.3, which compares OC-BCAST with these algorithms.
//!
//! Protocol: the owner of a range of PEs sends to the first PE of the second half of this range,
//! and so on (`rank_math/halving`). In the first algorithm it sends the whole message, in the
//! second the slices of that half. In the second algorithm, each PE then does this `P - 1` times:
//! it sends a slice to its left neighbour, first its own slice and then the one that it received
//! last, and receives a slice from its right neighbour (`rank_math/slices`). The messages are those
//! of `protocols/two_sided`. Even PEs send first, odd PEs receive first. PEs never wait in a cycle,
//! because no PE sends to the root.
//!
//! Cost: `log2 P` messages one after the other. In the second algorithm, each of these carries half
//! as many slices as the previous one. Then `2 (P - 1)` messages of one slice follow, because a PE
//! sends and receives in turn.

use std::ops::Range;

use consort_fabric::{
    CallSpec, Candidate, MachineModel, Messages, Op, Query, Rank, Rma, Span, Step,
};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    protocols::two_sided::TwoSided,
    rank_math::{
        halving::{Half, half, rounds},
        slices::Slices,
    },
};

const INCAPABLE: &str = "it needs a message buffer and two flags for each PE";

/// A message between this PE and a peer: a part of the data.
#[derive(Clone, Copy, Hash)]
struct Message {
    peer: Rank,
    at: usize,
    bytes: usize,
}

/// The messages that a PE receives and then sends down the halves.
#[derive(Hash)]
struct Down {
    by: TwoSided,
    steps: Step,
    received: Option<Message>,
    sent: Box<[Message]>,
}

impl Down {
    /// Returns the messages of this PE. They hold the slices of the PEs of a half, or the whole
    /// message if `slices` is `None`.
    fn new(setting: &Setting, slices: Option<Slices>) -> Option<Self> {
        let Setting { rank, call: CallSpec { root, pes, bytes, .. }, .. } = *setting;
        let by = TwoSided::new(setting, 0)?;
        let Half { parent, range, children } = half(rank, root, pes);
        let message = |peer, range: &Range<u32>| {
            let (at, bytes) = slices.map_or((0, bytes), |slices| slices.of(range));
            Message { peer, at, bytes }
        };
        Some(Self {
            by,
            steps: by.pieces(bytes)?,
            received: parent.map(|(parent, _)| message(parent, &range)),
            sent: children.iter().map(|(child, range)| message(*child, range)).collect(),
        })
    }

    /// Returns a span of the data that this PE has.
    #[inline(always)]
    fn own(&self, at: usize, bytes: usize) -> Span {
        if self.received.is_some() { Span::target(at, bytes) } else { Span::source(at, bytes) }
    }

    #[inline(always)]
    async fn run<F: Messages + Rma>(&self, f: &F) -> Op {
        if let Some(Message { peer, at, bytes }) = self.received {
            self.by.receive(f, peer, 0, Span::target(at, bytes)).await?;
        }
        for &Message { peer, at, bytes } in &self.sent {
            self.by.send(f, peer, 0, self.own(at, bytes)).await?;
        }
        Ok(())
    }
}

/// The binomial tree.
#[derive(Hash)]
pub struct TwoSidedBinomial;

/// One PE's schedule.
#[derive(Hash)]
pub struct Binomial(Down);

impl Algorithm for TwoSidedBinomial {
    const NAME: &'static str = "two_sided_binomial";
    const DIRECTION: Direction = Direction::Down;
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Binomial;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Binomial, PlanError> {
        Self::check_names(candidate)?;
        Down::new(setting, None).map(Binomial).ok_or(Self::incapable(INCAPABLE))
    }

    fn steps(schedule: &Binomial) -> u64 {
        u64::from(schedule.0.steps)
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let levels = f64::from(rounds(query.pes)) * model.pes_a_core(query.pes);
        levels * TwoSided::cost_ns(query, query.bytes as f64, model)
    }

    #[inline(always)]
    async fn run<F: Messages + Rma>(f: &F, schedule: &Binomial) -> Op {
        schedule.0.run(f).await
    }
}

/// Slices go down the halves, then around a ring.
#[derive(Hash)]
pub struct TwoSidedScatterAllgather;

/// One PE's schedule.
#[derive(Hash)]
pub struct ScatterAllgather {
    down: Down,
    by: TwoSided,
    slices: Slices,
    /// The pieces of a slice.
    pieces: Step,
    pes: u32,
    steps: Step,
    /// The left neighbour; `None` if that is the root.
    left: Option<Rank>,
    /// The right neighbour; `None` at the root, which has all slices.
    right: Option<Rank>,
}

impl ScatterAllgather {
    fn new(setting: &Setting) -> Option<Self> {
        let Setting { rank, call: CallSpec { root, pes, bytes, .. }, .. } = *setting;
        let slices = Slices::new(bytes, rank, root, pes);
        let (down, by) = (Down::new(setting, Some(slices))?, TwoSided::new(setting, 1)?);
        let pieces = by.pieces(slices.longest())?;
        Some(Self {
            steps: down.steps.max(pieces.checked_mul(pes)?),
            down,
            by,
            slices,
            pieces,
            pes,
            left: slices.left(rank),
            right: slices.right(rank),
        })
    }
}

impl Algorithm for TwoSidedScatterAllgather {
    const NAME: &'static str = "two_sided_scatter_allgather";
    const DIRECTION: Direction = Direction::Down;
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = ScatterAllgather;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<ScatterAllgather, PlanError> {
        Self::check_names(candidate)?;
        ScatterAllgather::new(setting).ok_or(Self::incapable(INCAPABLE))
    }

    fn steps(schedule: &ScatterAllgather) -> u64 {
        u64::from(schedule.steps)
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (pes, bytes) = (f64::from(query.pes), query.bytes as f64);
        // Half of the data, then a quarter, and so on: in the end, all but one slice.
        let scattered = TwoSided::cost_ns(query, bytes * (pes - 1.0) / pes, model);
        let levels = f64::from(rounds(query.pes)).max(1.0) - 1.0;
        let flags = levels * model.hops_ns(2.0, query.pes);
        // With two PEs, each only sends or only receives.
        let each = if query.pes == 2 { 1.0 } else { 2.0 };
        let around = each * (pes - 1.0) * TwoSided::cost_ns(query, bytes / pes, model);
        (scattered + flags + around) * model.pes_a_core(query.pes)
    }

    #[inline(always)]
    async fn run<F: Messages + Rma>(f: &F, schedule: &ScatterAllgather) -> Op {
        let ScatterAllgather { down, by, slices, pieces, pes, left, right, .. } = schedule;
        down.run(f).await?;
        let sends_first = slices.sends_first();
        for round in 0..pes - 1 {
            for sends in [sends_first, !sends_first] {
                match (left, right) {
                    (Some(left), _) if sends => {
                        let (at, bytes) = slices.part(round, 0, slices.longest());
                        by.send(f, *left, round * pieces, down.own(at, bytes)).await?;
                    }
                    (_, Some(right)) if !sends => {
                        let (at, bytes) = slices.part(round + 1, 0, slices.longest());
                        by.receive(f, *right, round * pieces, Span::target(at, bytes)).await?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
