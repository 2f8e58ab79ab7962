//! Shared reduction: each PE combines a share of the message.
//!
//! Idea: in `direct` the root does all the work. Here each PE exposes its source to all others, and
//! the root also exposes its target. PEs draw chunks by tickets, combine all contributions to a
//! chunk, and put the result into the root's target. This is the reduction over a shared address
//! space of Hashmi, Chakraborty, Bayatpour, Subramoni and Panda 2018, with drawn chunks instead of
//! fixed ones.
//!
//! Protocol:
//! 1. each PE exposes its source to all others (exposure 0), and the root its target (exposure 1);
//! 2. all PEs draw tickets from the root's counter; the PE that drew `t` combines chunk `t` in rank
//!    order, and puts it into the root's target;
//! 3. all PEs detach the buffers after a fence. When the root's buffers are detached, it resets the
//!    counter to 0.
//!
//! Cost: `(P - 1) / P` passes over the message per PE, `(P + 1) (P - 1)` exposed buffers.
//!
//! In place, the root's target is also its source, and it is exposed once. This is safe, because
//! only the PE that drew a chunk reads and writes that chunk.

use consort_fabric::{
    CallSpec, Candidate, Counters, MachineModel, Op, OperatorClass, Place, Query, Rank, Rendezvous,
    Span,
};

use super::direct::combine_in_order;
use crate::{Algorithm, Direction, Parameter, PlanError, Setting};

#[derive(Hash)]
pub struct Shared;

/// One PE's schedule.
#[derive(Clone, Copy, Hash)]
pub struct Schedule {
    root: Rank,
    bytes: usize,
    contribution: Place,
    in_place: bool,
    chunk: usize,
    counter: u32,
    class: OperatorClass,
}

impl Algorithm for Shared {
    const NAME: &'static str = "shared";
    const DIRECTION: Direction = Direction::Up;
    const IN_PLACE: bool = true;
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "chunk_bytes", values: &[4096, 8192, 16384], range: (1, 1 << 30) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        Self::need_counters(setting)?;
        Self::need_exposures(setting)?;
        let wanted = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        let Setting { counter, call: CallSpec { root, bytes, element_bytes, .. }, .. } = *setting;
        let element = element_bytes.max(1);
        let most = wanted.min(setting.capabilities.scratch_bytes);
        if most < element {
            return Err(Self::incapable("an element is larger than a chunk"));
        }
        let chunk = most / element * element;
        if bytes <= chunk {
            return Err(Self::incapable("there is only one chunk"));
        }
        let CallSpec { class, in_place, .. } = setting.call;
        let contribution = setting.contribution();
        Ok(Schedule { root, bytes, contribution, in_place, chunk, counter, class })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (pes, bytes) = (f64::from(query.pes), query.bytes as f64);
        let chunk = candidate.parameter("chunk_bytes").unwrap_or(16384) as f64;
        // The number of working PEs is at most the number of chunks.
        let cores = model.cores_of(query.pes);
        let workers = cores.min((bytes / chunk).ceil().max(1.0));
        // All of the result except the root's share moves to the PE that combines it, and back.
        let moves = pes - 1.0 + 2.0 * (workers - 1.0) / workers;
        let passes = bytes * moves / model.pull_gbps;
        let tickets = bytes / chunk * model.transfer_ns;
        // Every PE attaches every other PE's buffer.
        let exposures = 2.0 * (pes - 2.0).max(0.0) * model.next_line_ns;
        model.hops_ns(5.0, query.pes) + exposures + (passes + tickets) / workers
    }

    #[inline(always)]
    async fn run<F: Rendezvous + Counters>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { root, bytes, contribution, in_place, chunk, counter, class } = *schedule;
        let own = |at, bytes| Span { place: contribution, at, bytes };
        let (me, pes) = (f.rank(), f.size());
        let others = (0..pes).map(Rank).filter(|&rank| rank != me);
        for peer in others.clone() {
            f.expose(peer, 0, own(0, bytes)).await?;
            if me == root && !in_place {
                f.expose(peer, 1, Span::target(0, bytes)).await?;
            }
        }
        let mut remotes = Vec::with_capacity(pes as usize);
        for peer in (0..pes).map(Rank) {
            remotes.push(if peer == me { None } else { Some(f.attach(peer, 0).await?) });
        }
        let separate = if me == root || in_place { None } else { Some(f.attach(root, 1).await?) };
        let target = if in_place { &remotes[root.index()] } else { &separate };
        let chunks = bytes.div_ceil(chunk);
        let share = chunks.div_ceil(pes as usize);
        for taken in 0.. {
            if taken == share {
                // This PE has done its share; others may take the rest while it runs its program.
                f.yield_now().await?;
            }
            let ticket = usize::try_from(f.count(root, counter, 1).await?).unwrap_or(chunks);
            if ticket >= chunks {
                break;
            }
            let at = ticket * chunk;
            let sum = Span::accumulator(chunk.min(bytes - at));
            combine_in_order(f, &remotes, own(at, sum.bytes), sum, class).await?;
            match target {
                Some(target) => f.put(target, at, sum).await?,
                None => f.copy(Span::target(at, sum.bytes), sum).await?,
            }
        }
        f.fence().await?;
        for remote in remotes.into_iter().chain([separate]).flatten() {
            f.detach(remote).await?;
        }
        f.await_detached().await?;
        if me == root {
            f.count(me, counter, ((chunks + pes as usize) as u64).wrapping_neg()).await?;
        }
        Ok(())
    }
}
