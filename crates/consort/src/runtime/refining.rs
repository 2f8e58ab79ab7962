//! Makes a call of a kind whose choice is being refined.

use std::{sync::Arc, time::Instant};

use consort_collectives::PlanError;
use consort_fabric::{CallSpec, Collective, Sum, SyncModes};
use consort_native::{Buffer, Operands, Site};
use consort_tuner::online::{RefinementStep, TIMES};

use super::{
    dispatch::Combining,
    hold::Hold,
    plan_cache::Key,
    plans::Ready,
    refinement::{Kind, Refinements},
};
use crate::{Error, Result, error::CallError};

impl Hold {
    /// Makes a call by the candidate that refinement selects.
    #[cold]
    pub(crate) fn refine(
        &self,
        refinements: &Refinements,
        key: Key,
        call: &CallSpec,
        operands: &Operands<'_>,
        site: Site,
    ) -> Result<()> {
        let (mut kind, era) = refinements.take(call, || self.contestants(call));
        let done = self.refine_kind(refinements, (&mut kind, era), key, call, operands, site);
        refinements.put_back(call, kind, era);
        done
    }

    fn refine_kind(
        &self,
        refinements: &Refinements,
        (kind, era): (&mut Kind, u64),
        key: Key,
        call: &CallSpec,
        operands: &Operands<'_>,
        site: Site,
    ) -> Result<()> {
        loop {
            let calls = self.endpoint.calls();
            if let Some(until) = kind.rests_until.filter(|&until| calls <= until) {
                let ready = self.plan_of(kind, kind.refinement.incumbent(), call)?;
                // The all-reduce of the times may have begun a quarter of the window. Then all
                // kinds may have been dropped.
                if refinements.is_known(era) {
                    refinements.wake_by(until);
                    self.keep(call, key, &ready);
                }
                return self.run_new(&*ready, operands, site);
            }
            match kind.refinement.advance() {
                RefinementStep::Rest(rest) => {
                    kind.rests_until = Some(self.quarter_from(calls, rest))
                }
                RefinementStep::Try(index) => match self.plan_of(kind, index, call) {
                    Ok(ready) => {
                        let begun = Instant::now();
                        self.run_new(&*ready, operands, site)?;
                        let took_ns = begun.elapsed().as_nanos();
                        kind.refinement.record_time(u64::try_from(took_ns).unwrap_or(u64::MAX));
                        return Ok(());
                    }
                    Err(Error::Call(CallError::Plan(PlanError::Incapable { .. })))
                        if index != kind.refinement.incumbent() =>
                    {
                        kind.refinement.drop_candidate(index);
                    }
                    Err(error) => return Err(error),
                },
                RefinementStep::Decide => {
                    let sums = self.add_up(refinements, &kind.refinement.times_ns(), site)?;
                    kind.refinement.decide(&sums, call.pes);
                }
            }
        }
    }

    /// Returns the plan of a candidate, which is created at its first try.
    fn plan_of(&self, kind: &mut Kind, index: usize, call: &CallSpec) -> Result<Arc<dyn Ready>> {
        if let Some(ready) = &kind.plans[index] {
            return Ok(Arc::clone(ready));
        }
        let ready = self.prepare_by(call, &kind.refinement.candidates()[index])?;
        kind.plans[index] = Some(Arc::clone(&ready));
        Ok(ready)
    }

    /// Adds up the times of all PEs, in a call with its own name, because a plan that the program
    /// has for such an all-reduce may be cached on one PE and not on another.
    fn add_up(
        &self,
        refinements: &Refinements,
        times: &[u64; TIMES],
        site: Site,
    ) -> Result<[u64; TIMES]> {
        let sum = Combining::new::<u64, _>(&Sum);
        let ready = refinements.deciding(|| {
            let (collective, sync) = (Collective::AllReduce, SyncModes::MINE);
            let call = self.spec::<u64, u64>(collective, sync, TIMES, Some(sum));
            self.prepare_named(&call, "the refinement of choices")
        })?;
        let mut sums = [0; TIMES];
        let operands = Operands {
            kernel: Some(sum.kernel),
            source: Buffer::source(times),
            target: Buffer::target(&mut sums),
            layouts: None,
        };
        self.run_new(&*ready, &operands, site)?;
        Ok(sums)
    }
}
