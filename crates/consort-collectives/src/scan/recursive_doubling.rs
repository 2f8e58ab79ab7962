//! Recursive doubling: in round `i` each PE adds the partial result of the PE `2^i` before it.
//!
//! After round `i` a PE has the combination of the `2^(i + 1)` PEs up to itself, in rank order.
//! Source: Hillis and Steele 1986, "Data parallel algorithms", section "All Partial Sums of an
//! Array".
//!
//! Protocol, for each chunk, for `d = 1, 2, 4, ...` below `P`:
//! 1. send the partial result to the PE `d` after this one, if there is one;
//! 2. receive the partial result of the PE `d` before this one, if there is one, and combine it
//!    with this PE's.
//!
//! The result of an exclusive scan does not include the PE's own block, so it is combined
//! separately. If a send waits for its receiver, PEs of even `rank / d` send first and the others
//! receive first. Messages go in chunks over two buffers per round (`protocols/stream`).
//!
//! Cost: `log2 P` transfers, at most `log2 P` messages per PE.

use consort_fabric::{
    CallSpec, Candidate, Collective, MachineModel, Messages, Op, Query, Rank, Span,
};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    protocols::stream::{Chunks, Edge},
};

#[derive(Hash)]
pub struct RecursiveDoubling;

#[derive(Clone, Copy, Hash)]
struct Round {
    before: Option<Edge>,
    after: Option<Edge>,
    sends_first: bool,
    /// Whether this PE sends its partial result in a later round.
    is_sent_on: bool,
}

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    chunks: Chunks,
    is_inclusive: bool,
    rounds: Box<[Round]>,
}

impl Algorithm for RecursiveDoubling {
    const NAME: &'static str = "recursive_doubling";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let Setting { rank: Rank(rank), call: CallSpec { pes, bytes, element_bytes, .. }, .. } =
            *setting;
        let scratch = setting.capabilities.scratch_bytes;
        let count = pes.next_power_of_two().ilog2();
        // Channels: for each round, one for signals that a chunk is taken; then the buffers of each
        // round.
        let room = setting.lines().saturating_sub(count) / count.max(1);
        let chunks = Chunks::new(bytes, element_bytes, scratch, room)
            .filter(|chunks| chunks.chunk_bytes() <= scratch)
            .ok_or(Self::incapable("the inbox or the scratch memory is too small"))?;
        let round = |index: u32| {
            let distance = 1 << index;
            let edge = |peer| Edge {
                peer: Rank(peer),
                data: setting.channel(count + index * chunks.lines_per_edge()),
                taken: setting.channel(index),
            };
            Round {
                before: rank.checked_sub(distance).map(edge),
                after: Some(rank + distance).filter(|&after| after < pes).map(edge),
                sends_first: setting.capabilities.buffered || (rank / distance).is_multiple_of(2),
                is_sent_on: index + 1 < count && rank + 2 * distance < pes,
            }
        };
        let is_inclusive = setting.call.collective == Collective::Scan;
        Ok(Schedule { chunks, is_inclusive, rounds: (0..count).map(round).collect() })
    }

    fn steps(schedule: &Schedule) -> u64 {
        u64::from(schedule.chunks.count())
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let bytes = query.bytes as f64;
        let work = 2.0 * model.lines_ns(bytes) + bytes / model.copy_gbps;
        let rounds = f64::from(query.pes.next_power_of_two().ilog2());
        let turns = model.pes_a_core(query.pes);
        rounds * (model.hops_ns(1.0, query.pes) + work * turns)
    }

    #[inline(always)]
    async fn run<F: Messages>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { chunks, is_inclusive, ref rounds } = *schedule;
        for index in 0..chunks.count() {
            let (at, bytes) = chunks.range(index);
            let (own, result) = (Span::source(at, bytes), Span::target(at, bytes));
            let sum = if is_inclusive { result } else { Span::accumulator(bytes) };
            let mut so_far = own;
            for &Round { before, after, sends_first, is_sent_on } in rounds {
                let is_first = so_far == own;
                let theirs = if is_first && !is_inclusive { result } else { Span::incoming(bytes) };
                for sends in [sends_first, !sends_first] {
                    match (before, after) {
                        (_, Some(after)) if sends => {
                            if let Some(step) = chunks.awaits(index) {
                                f.wait(after.taken, step).await?;
                            }
                            f.send(after.peer, after.buffer(&chunks, index), index, so_far).await?;
                        }
                        (Some(before), _) if !sends => {
                            f.receive(before.buffer(&chunks, index), index, theirs).await?;
                            if chunks.is_awaited(index) {
                                f.signal(before.peer, before.taken, index).await?;
                            }
                        }
                        _ => {}
                    }
                }
                if before.is_none() {
                    continue;
                }
                if is_inclusive || is_sent_on {
                    f.combine(sum, theirs, so_far).await?;
                }
                if !is_inclusive && !is_first {
                    f.combine(result, theirs, result).await?;
                }
                so_far = sum;
            }
            if is_inclusive && so_far == own {
                f.copy(result, own).await?;
            }
        }
        Ok(())
    }
}
