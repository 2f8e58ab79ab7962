//! Choices refined while the program runs: which candidate serves a call when, and its time.
//!
//! Who is tried, and how often, is decided in `consort_tuner::online`; here calls are counted and
//! timed. All PEs of a team make the same calls, so they count alike; their clocks are added up in
//! an all-reduce before anything is decided, so they decide alike. While a kind of call rests its
//! plan is kept like any other, and a call costs what it costs without: a team wakes up where a
//! quarter of its window begins.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    sync::Arc,
    time::Instant,
};

use consort_collectives::PlanError;
use consort_fabric::{Candidate, Sum, Sync};
use consort_native::Operands;
use consort_tuner::online::{Next, Refinement, TIMES};

use crate::{
    Error, Result, Team,
    cache::{Key, Ready},
    team::Shape,
};

/// What a team's PE knows of the kinds of calls that it refines.
pub(crate) struct Online {
    share: f64,
    kinds: RefCell<HashMap<Key, Kind>>,
    /// The number of the call at which the first kind wakes up.
    wakes: Cell<u64>,
    /// Whether times are being added up, by a call that is not refined itself.
    is_deciding: Cell<bool>,
    /// The plan of that call: apart from the program's own ones.
    deciding: RefCell<Option<Arc<dyn Ready>>>,
}

struct Kind {
    refinement: Refinement,
    plans: Vec<Option<Arc<dyn Ready>>>,
    rests_until: u64,
}

impl Online {
    /// Refining at the cost of at most `share` of the time in calls.
    pub(crate) fn new(share: f64) -> Self {
        Self {
            share,
            kinds: RefCell::default(),
            wakes: Cell::new(u64::MAX),
            is_deciding: Cell::new(false),
            deciding: RefCell::default(),
        }
    }

    /// The plan of the call that adds times up, made when it is first needed.
    pub(crate) fn deciding_plan(
        &self,
        prepare: impl FnOnce() -> Result<Arc<dyn Ready>>,
    ) -> Result<Arc<dyn Ready>> {
        if let Some(ready) = &*self.deciding.borrow() {
            return Ok(Arc::clone(ready));
        }
        let ready = prepare()?;
        *self.deciding.borrow_mut() = Some(Arc::clone(&ready));
        Ok(ready)
    }

    /// Whether calls are refined now.
    pub(crate) fn refines(&self) -> bool {
        !self.is_deciding.get()
    }

    /// Whether plans are to be dropped before call number `call`, since some kind has rested.
    pub(crate) fn is_due(&self, call: u64) -> bool {
        let is_due = call >= self.wakes.get();
        if is_due {
            self.wakes.set(u64::MAX);
        }
        is_due
    }

    /// Forgets all, since algorithms were forced or no longer are.
    pub(crate) fn clear(&self) {
        self.kinds.borrow_mut().clear();
        self.deciding.take();
    }
}

impl Kind {
    fn new(candidates: Vec<Candidate>, share: f64) -> Self {
        let plans = vec![None; candidates.len()];
        Self { refinement: Refinement::new(candidates, share), plans, rests_until: 0 }
    }
}

impl Team<'_> {
    /// Makes a call by the candidate whose turn it is.
    #[cold]
    pub(crate) fn refine(
        &self,
        online: &Online,
        key: Key,
        shape: &Shape<'_>,
        operands: &Operands<'_>,
    ) -> Result<()> {
        let kind = online.kinds.borrow_mut().remove(&key);
        let mut kind = match kind {
            Some(kind) => kind,
            None => Kind::new(self.state.contestants(shape, self.sync()), online.share),
        };
        let done = self.refine_kind(online, &mut kind, key, shape, operands);
        online.kinds.borrow_mut().insert(key, kind);
        done
    }

    fn refine_kind(
        &self,
        online: &Online,
        kind: &mut Kind,
        key: Key,
        shape: &Shape<'_>,
        operands: &Operands<'_>,
    ) -> Result<()> {
        let state = self.state;
        loop {
            let calls = state.endpoint.calls();
            let rests = (calls < kind.rests_until).then(|| Next::Rest(kind.rests_until - calls));
            match rests.unwrap_or_else(|| kind.refinement.advance()) {
                Next::Rest(rest) => {
                    kind.rests_until = calls.saturating_add(rest);
                    online.wakes.set(online.wakes.get().min(kind.rests_until));
                    let ready = self.plan_of(kind, kind.refinement.incumbent(), shape)?;
                    state.keep(shape, key, &ready);
                    return state.run_new(&*ready, operands);
                }
                Next::Try(index) => match self.plan_of(kind, index, shape) {
                    Ok(ready) => {
                        let begun = Instant::now();
                        state.run_new(&*ready, operands)?;
                        let took_ns = begun.elapsed().as_nanos();
                        kind.refinement.took(u64::try_from(took_ns).unwrap_or(u64::MAX));
                        return Ok(());
                    }
                    Err(Error::Plan(PlanError::Incapable { .. }))
                        if index != kind.refinement.incumbent() =>
                    {
                        kind.refinement.drop_candidate(index);
                    }
                    Err(error) => return Err(error),
                },
                Next::Decide => {
                    let mut sums = [0; TIMES];
                    online.is_deciding.set(true);
                    let times = kind.refinement.times_ns();
                    let summed = self.with(Sync::MINE).all_reduce_slice(&times, &mut sums, Sum);
                    online.is_deciding.set(false);
                    summed?;
                    kind.refinement.decide(&sums, self.size());
                }
            }
        }
    }

    /// The plan of a candidate, made when it is first tried.
    fn plan_of(&self, kind: &mut Kind, index: usize, shape: &Shape<'_>) -> Result<Arc<dyn Ready>> {
        if let Some(ready) = &kind.plans[index] {
            return Ok(Arc::clone(ready));
        }
        let candidate = &kind.refinement.candidates()[index];
        let ready = self.state.prepare_by(shape, self.sync(), candidate)?;
        kind.plans[index] = Some(Arc::clone(&ready));
        Ok(ready)
    }
}
