//! Shared scan: each PE scans its share of all PEs' data.
//!
//! Idea: as in the all-reduce `shared`, each PE does all the work on a part of the data. A PE
//! combines its share of all contributions in rank order, and puts each partial result into the
//! target of the PE to which the result belongs. So no PE waits for another's result, and all do
//! the same amount of work. Source: Hashmi, Chakraborty, Bayatpour, Subramoni and Panda 2018, whose
//! design over a shared address space has only reductions.
//!
//! Protocol (`protocols/shares`):
//! 1. each PE exposes its source and its target to all others;
//! 2. each combines its share of one contribution after the other, a block at a time, and puts a
//!    partial result into the target of each contribution's PE: the combination up to and including
//!    this contribution, or, in an exclusive scan, the combination before it;
//! 3. each detaches all buffers after a fence, and waits until all its own buffers are detached.
//!
//! Cost: one pass of reading and one of writing per PE, for any number of PEs, and `2 P (P - 1)`
//! exposed buffers; half as many in place.

use consort_fabric::{Candidate, Collective, MachineModel, Op, Query, Rendezvous, Span};

use crate::{Algorithm, Parameter, PlanError, Setting, protocols::shares::Shares};

#[derive(Hash)]
pub struct Shared;

/// One PE's schedule.
#[derive(Clone, Copy, Hash)]
pub struct Schedule {
    shares: Shares,
    is_inclusive: bool,
}

impl Algorithm for Shared {
    const NAME: &'static str = "shared";
    const IN_PLACE: bool = true;
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "block_bytes", values: &[4096, 16384, 65536], range: (1, 1 << 30) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let wanted = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        let shares = Shares::new(setting, wanted).map_err(Self::incapable)?;
        Ok(Schedule { shares, is_inclusive: setting.call.collective == Collective::Scan })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        Shares::cost_ns(query, candidate, model)
    }

    #[inline(always)]
    async fn run<F: Rendezvous>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { ref shares, is_inclusive } = *schedule;
        let buffers = shares.attach(f).await?;
        let last = buffers.sources.len() - 1;
        for own in shares.blocks() {
            let target = Span::target(own.at, own.bytes);
            let [mut before, mut after] = [Span::accumulator(own.bytes), Span::incoming(own.bytes)];
            for (rank, (source, result)) in
                buffers.sources.iter().zip(buffers.targets()).enumerate()
            {
                // An exclusive scan does not contain the last contribution.
                if is_inclusive || rank < last {
                    match (source, rank) {
                        (None, 0) => f.copy(after, own).await?,
                        (Some(source), 0) => f.get(source, own.at, after).await?,
                        (None, _) => f.combine(after, before, own).await?,
                        (Some(source), _) => f.get_combine(source, own.at, before, after).await?,
                    }
                }
                // The first PE has no result of an exclusive scan. Its result of an inclusive scan
                // in place is already there.
                if is_inclusive && !shares.is_in_place() || rank > 0 {
                    let sum = if is_inclusive { after } else { before };
                    match result {
                        None => f.copy(target, sum).await?,
                        Some(result) => f.put(result, own.at, sum).await?,
                    }
                }
                (before, after) = (after, before);
            }
        }
        Shares::detach(f, buffers).await
    }
}
