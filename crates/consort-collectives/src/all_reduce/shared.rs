//! Shared all-reduce: each PE combines its share of all PEs' data, and puts it to every PE.
//!
//! Idea: a reduce-scatter and an all-gather, both in the callers' own buffers (Rabenseifner 2004,
//! "Optimization of collective reduction operations", without messages; Hashmi, Chakraborty,
//! Bayatpour, Subramoni and Panda 2018 for a shared address space).
//!
//! Protocol:
//! 1. each PE exposes its source (exposure 0) and its target (exposure 1) to all others;
//! 2. each combines its share, a block at a time, in the order of the ranks, and puts the block
//!    into every PE's target;
//! 3. each detaches all buffers after a fence, and waits until all of its own are detached.
//!
//! Cost: a pass over the message a PE, whatever the number of PEs, and `2 P (P - 1)` exposed
//! buffers.

use consort_fabric::{
    CallSpec, Candidate, MachineModel, Op, OperatorClass, Query, Rank, Rendezvous, Span,
};

use crate::{Algorithm, Parameter, PlanError, Setting, reduce::combine_in_order};

#[derive(Debug)]
pub struct Shared;

/// One PE's schedule.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    bytes: usize,
    /// The own share: its beginning and its end.
    share: (usize, usize),
    block: usize,
    class: OperatorClass,
}

impl Algorithm for Shared {
    const NAME: &'static str = "shared";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "block_bytes", values: &[4096, 16384, 65536], range: (1, 1 << 30) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let wanted = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        if !setting.capabilities.exposes {
            return Err(Self::incapable("the fabric cannot expose buffers"));
        }
        let Setting { rank, call: CallSpec { pes, bytes, element_bytes, .. }, .. } = *setting;
        let element = element_bytes.max(1);
        let wanted = wanted.min(setting.capabilities.scratch_bytes);
        if wanted < element {
            return Err(Self::incapable("an element is larger than a block"));
        }
        // Whole elements; shares begin at multiples of a line if elements divide a line.
        let grain = if (64 % element) == 0 { 64 } else { element };
        let each = bytes.div_ceil(pes as usize).next_multiple_of(grain);
        let edge = |index: usize| (index * each).min(bytes);
        Ok(Schedule {
            bytes,
            share: (edge(rank.index()), edge(rank.index() + 1)),
            block: wanted / element * element,
            class: setting.call.class,
        })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (pes, bytes) = (f64::from(query.pes), query.bytes as f64);
        let cores = model.cores_of(query.pes);
        // Each byte of the result is read from every other PE, and written to every other PE; own
        // bytes are copied.
        let moved = 2.0 * bytes * (pes - 1.0) / model.pull_gbps + bytes / model.copy_gbps;
        let exposures = 4.0 * (pes - 2.0).max(0.0) * model.next_line_ns;
        // A signal that the buffers are exposed, one that they are detached, and the way to the
        // next call.
        model.hops_ns(3.0, query.pes) + exposures + moved / cores
    }

    #[inline(always)]
    async fn run<F: Rendezvous>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, share: (from, to), block, class } = *schedule;
        let (me, pes) = (f.rank(), f.size());
        for peer in (0..pes).map(Rank).filter(|&peer| peer != me) {
            f.expose(peer, 0, Span::source(0, bytes)).await?;
            f.expose(peer, 1, Span::target(0, bytes)).await?;
        }
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        for peer in (0..pes).map(Rank) {
            let is_own = peer == me;
            sources.push(if is_own { None } else { Some(f.attach(peer, 0).await?) });
            if !is_own {
                targets.push(f.attach(peer, 1).await?);
            }
        }
        for at in (from..to).step_by(block) {
            // Not in the target, which others may write meanwhile.
            let sum = Span::accumulator(block.min(to - at));
            combine_in_order(f, &sources, at, sum, class).await?;
            for target in &targets {
                f.put(target, at, sum).await?;
            }
            f.copy(Span::target(at, sum.bytes), sum).await?;
        }
        f.fence().await?;
        for remote in sources.into_iter().flatten().chain(targets) {
            f.detach(remote).await?;
        }
        f.await_detached().await
    }
}
