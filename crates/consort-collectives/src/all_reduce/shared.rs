//! Shared all-reduce: each PE combines its share of all PEs' data, and puts it to every PE.
//!
//! Idea: a reduce-scatter and an all-gather, both in the callers' own buffers (Rabenseifner 2004,
//! "Optimization of collective reduction operations", without messages; Hashmi, Chakraborty,
//! Bayatpour, Subramoni and Panda 2018 for a shared address space).
//!
//! Protocol (`protocols/shares`):
//! 1. each PE exposes its source and its target to all others;
//! 2. each combines its share in rank order, a block at a time, and puts the block into every PE's
//!    target;
//! 3. each detaches all buffers after a fence, and waits until all its own buffers are detached.
//!
//! Cost: one pass over the message per PE, for any number of PEs, and `2 P (P - 1)` exposed
//! buffers; half as many in place.

use consort_fabric::{Candidate, MachineModel, Op, Query, Rendezvous, Span};

use crate::{
    Algorithm, Parameter, PlanError, Setting, protocols::shares::Shares, reduce::combine_in_order,
};

#[derive(Hash)]
pub struct Shared;

impl Algorithm for Shared {
    const NAME: &'static str = "shared";
    const IN_PLACE: bool = true;
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "block_bytes", values: &[4096, 16384, 65536], range: (1, 1 << 30) }];
    type Schedule = Shares;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Shares, PlanError> {
        Self::check_names(candidate)?;
        let wanted = usize::try_from(Self::parameter(candidate, 0)?).unwrap_or(usize::MAX);
        Shares::new(setting, wanted).map_err(Self::incapable)
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        Shares::cost_ns(query, candidate, model)
    }

    #[inline(always)]
    async fn run<F: Rendezvous>(f: &F, shares: &Shares) -> Op {
        let buffers = shares.attach(f).await?;
        for own in shares.blocks() {
            // Not in the target, because peers may write there at the same time.
            let sum = Span::accumulator(own.bytes);
            combine_in_order(f, &buffers.sources, own, sum, shares.class).await?;
            for target in buffers.targets().iter().flatten() {
                f.put(target, own.at, sum).await?;
            }
            f.copy(Span::target(own.at, own.bytes), sum).await?;
        }
        Shares::detach(f, buffers).await
    }
}
