//! Choices refined while the program runs: which candidate serves a call when, and its time.
//!
//! Who is tried, and how often, is decided in `consort_tuner::online`; here calls are counted and
//! timed. All PEs of a team make the same calls, so they count alike; their clocks are added up in
//! an all-reduce before anything is decided, so they decide alike. While a kind of call rests its
//! plan is kept like any other, and a call costs what it costs without.
//!
//! A kind is all calls that PEs must make alike: it has names, not addresses, since PEs may come
//! from different places of a program. Kept plans are found by addresses, so a PE may have one
//! where another has none. That must not show:
//!
//! | a call of a kind that rests | is served by |
//! | --- | --- |
//! | whose plan is kept | that plan: the incumbent's |
//! | whose plan is not kept, or was driven out | the incumbent |
//! | that begins the quarter of the window in which the rest ends | the incumbent, the last time |
//!
//! A rest ends where a quarter of the window begins, since all kept plans expire there, during the
//! call that begins it. So that call still rests, and the next one of its kind finds no plan, on
//! all PEs.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    sync::Arc,
    time::Instant,
};

use consort_collectives::PlanError;
use consort_fabric::{Candidate, OperatorClass, Sum, Sync};
use consort_native::{Buffer, Operands};
use consort_tuner::online::{Next, Refinement, TIMES};

use crate::{
    Error, Result, Team,
    cache::{Key, Ready},
    team::{Hold, Shape},
};

/// What calls of one kind have in common on all PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KindKey {
    /// As [`Key::pack`] has it: collective, modes, root, and whether the buffers are symmetric.
    pub(crate) call: u64,
    pub(crate) bytes: usize,
    pub(crate) datatype: &'static str,
    pub(crate) element_bytes: usize,
    /// The operator's name, and whether operands may be exchanged.
    pub(crate) operator: Option<(&'static str, OperatorClass)>,
}

/// Kinds of calls that are refined at a time, but for those of a quarter of the window.
const MOST_KINDS: usize = 256;

/// What a team's PE knows of the kinds of calls that it refines.
pub(crate) struct Online {
    share: f64,
    kinds: RefCell<HashMap<KindKey, Kind>>,
    /// Kinds made since all were last forgotten; the same on all PEs.
    made: Cell<usize>,
    /// How often all were forgotten.
    era: Cell<u64>,
    /// The first call before which kept plans must expire, because some kind's rest ends there. It
    /// may be earlier than needed, never later.
    wakes: Cell<u64>,
    /// The plan of the call that adds times up: apart from the program's own ones.
    deciding: RefCell<Option<Arc<dyn Ready>>>,
}

struct Kind {
    refinement: Refinement,
    plans: Vec<Option<Arc<dyn Ready>>>,
    /// The number of the last call of the rest, which begins a quarter of the window.
    rests_until: Option<u64>,
}

impl Online {
    /// Refining at the cost of at most `share` of the time in calls.
    pub(crate) fn new(share: f64) -> Self {
        Self {
            share,
            kinds: RefCell::default(),
            made: Cell::new(0),
            era: Cell::new(0),
            wakes: Cell::new(u64::MAX),
            deciding: RefCell::default(),
        }
    }

    /// Whether kept plans are to expire before call number `call` begins a quarter of the window:
    /// some kind has rested, and this call is the last of its rest; or there are so many kinds, and
    /// plans that they hold, that all are forgotten.
    pub(crate) fn is_due(&self, call: u64) -> bool {
        let is_full = self.made.get() >= MOST_KINDS;
        let is_due = is_full || call >= self.wakes.get();
        if is_full {
            self.clear();
        }
        if is_due {
            self.wakes.set(u64::MAX);
        }
        is_due
    }

    /// Adds up the times of all PEs, in a call of its own: a plan that the program has for such a
    /// call may be kept on one PE and not on another.
    fn add_up(&self, state: Hold<'_>, times: &[u64; TIMES]) -> Result<[u64; TIMES]> {
        let shape = Shape::all_reduce::<u64, Sum>(TIMES, &Sum);
        let ready = self.deciding.borrow().clone();
        let ready = match ready {
            Some(ready) => ready,
            None => {
                let ready = state.prepare_named(&shape, Sync::MINE, "the refinement of choices")?;
                self.deciding.borrow_mut().insert(ready).clone()
            }
        };
        let mut sums = [0; TIMES];
        let operands = Operands {
            kernel: shape.kernel(),
            source: Buffer::source(times),
            target: Buffer::target(&mut sums),
            layouts: None,
        };
        state.run_new(&*ready, &operands)?;
        Ok(sums)
    }

    /// Forgets all, since algorithms were forced or no longer are.
    pub(crate) fn clear(&self) {
        self.wakes.set(u64::MAX);
        self.made.set(0);
        self.era.set(self.era.get() + 1);
        self.kinds.borrow_mut().clear();
        self.deciding.take();
    }
}

impl Kind {
    fn new(candidates: Vec<Candidate>, share: f64) -> Self {
        let plans = vec![None; candidates.len()];
        Self { refinement: Refinement::new(candidates, share), plans, rests_until: None }
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
        let kind_key = shape.kind_key(self.sync());
        let kind = online.kinds.borrow_mut().remove(&kind_key);
        let mut kind = match kind {
            Some(kind) => kind,
            None => {
                online.made.set(online.made.get() + 1);
                Kind::new(self.state.contestants(shape, self.sync()), online.share)
            }
        };
        let era = online.era.get();
        let done = self.refine_kind(online, &mut kind, key, shape, operands);
        if online.era.get() == era {
            online.kinds.borrow_mut().insert(kind_key, kind);
        }
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
            if let Some(until) = kind.rests_until.filter(|&until| calls <= until) {
                online.wakes.set(online.wakes.get().min(until));
                let ready = self.plan_of(kind, kind.refinement.incumbent(), shape)?;
                state.keep(shape, key, &ready);
                return state.run_new(&*ready, operands);
            }
            match kind.refinement.advance() {
                Next::Rest(rest) => kind.rests_until = Some(state.quarter_from(calls, rest)),
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
                    let sums = online.add_up(state, &kind.refinement.times_ns())?;
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
