//! Linear scan: each PE combines the previous PE's result with its own block, and forwards it.
//!
//! Source: the chain of Nishtala and Yelick 2009, section 4.1, whose partial results are the
//! results of a scan. It proceeds in chunks, so that all PEs work at once on a long block.
//!
//! Protocol, for each chunk:
//! 1. receive the combination of the PEs before this one, unless it is the first;
//! 2. combine it with this PE's block, and send the result to the next PE, unless this one is the
//!    last.
//!
//! Cost: `P - 1` consecutive chunks, then the rest of one message.

use consort_fabric::{
    CallSpec, Candidate, Collective, MachineModel, Messages, Op, Query, Rank, Span,
};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    protocols::stream::{Chunks, Edge},
};

#[derive(Hash)]
pub struct Linear;

/// One PE's schedule.
#[derive(Clone, Copy, Hash)]
pub struct Schedule {
    chunks: Chunks,
    is_inclusive: bool,
    before: Option<Edge>,
    after: Option<Edge>,
}

impl Algorithm for Linear {
    const NAME: &'static str = "linear";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "chunk_bytes", values: &[1024, 4096, 7056], range: (1, 1 << 30) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let wanted = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        let Setting { rank, call: CallSpec { pes, bytes, element_bytes, .. }, .. } = *setting;
        let room = setting.lines().saturating_sub(1);
        let chunks = Chunks::new(bytes, element_bytes, wanted, room)
            .filter(|chunks| chunks.chunk_bytes() <= setting.capabilities.scratch_bytes)
            .ok_or(Self::incapable("the inbox or the scratch memory is too small"))?;
        let edge =
            |peer| Edge { peer: Rank(peer), data: setting.channel(1), taken: setting.channel(0) };
        Ok(Schedule {
            chunks,
            is_inclusive: setting.call.collective == Collective::Scan,
            before: rank.0.checked_sub(1).map(edge),
            after: Some(rank.0 + 1).filter(|&next| next < pes).map(edge),
        })
    }

    fn steps(schedule: &Schedule) -> u64 {
        u64::from(schedule.chunks.count())
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let bytes = query.bytes as f64;
        let chunk = bytes.min(candidate.parameter("chunk_bytes").unwrap_or(4096) as f64);
        let pass = model.lines_ns(bytes) + bytes / model.copy_gbps;
        let hops = f64::from(query.pes) - 1.0;
        if model.is_shared(query.pes) {
            // The work of all PEs is done one after the other, and two chunks fill the buffers.
            let work = pass * model.pes_a_core(query.pes);
            let turns = (bytes / chunk.max(1.0) / 2.0).floor();
            return work + (hops / f64::from(query.pes) + turns) * model.hops_ns(1.0, query.pes);
        }
        let hop =
            model.hops_ns(1.0, query.pes) + model.later_lines_ns(chunk) + chunk / model.copy_gbps;
        hops * hop + pass
    }

    #[inline(always)]
    async fn run<F: Messages>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { chunks, is_inclusive, before, after } = *schedule;
        for index in 0..chunks.count() {
            let (at, bytes) = chunks.range(index);
            let (own, result) = (Span::source(at, bytes), Span::target(at, bytes));
            let mut so_far = own;
            if let Some(before) = before {
                let channel = before.buffer(&chunks, index);
                if is_inclusive {
                    // This PE's block is the right operand.
                    let earlier = Span::incoming(bytes);
                    f.receive(channel, index, earlier).await?;
                    f.combine(result, earlier, own).await?;
                    so_far = result;
                } else {
                    f.receive(channel, index, result).await?;
                    if after.is_some() {
                        so_far = Span::accumulator(bytes);
                        f.combine(so_far, result, own).await?;
                    }
                }
                if chunks.is_awaited(index) {
                    f.signal(before.peer, before.taken, index).await?;
                }
            } else if is_inclusive {
                f.copy(result, own).await?;
            }
            if let Some(after) = after {
                if let Some(earlier) = chunks.awaits(index) {
                    f.wait(after.taken, earlier).await?;
                }
                f.send(after.peer, after.buffer(&chunks, index), index, so_far).await?;
            }
        }
        Ok(())
    }
}
