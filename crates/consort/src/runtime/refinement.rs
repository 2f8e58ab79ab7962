//! Choices refined while the program runs: which candidate serves a call when, and its time.
//!
//! Who is tried, and how often, is decided in `consort_tuner::online`; here calls are counted and
//! timed. All PEs of a team make the same calls, so they count alike; their clocks are added up in
//! an all-reduce before anything is decided, so they decide alike. While a kind of call rests its
//! plan is kept like any other, and a call costs what it costs without.
//!
//! A kind is all calls that PEs must make alike: it has names, not addresses, since PEs may come
//! from different places of a program. OwnedLayout plans are found by addresses, so a PE may have
//! one where another has none. That must not show:
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
};

use consort_fabric::{CallSpec, Candidate};
use consort_tuner::online::Refinement;

use super::plans::Ready;
use crate::Result;

/// Kinds of calls that are refined at a time, but for those of a quarter of the window.
const MOST_KINDS: usize = 256;

/// What a team's PE knows of the kinds of calls that it refines.
pub(crate) struct Refinements {
    share: f64,
    kinds: RefCell<HashMap<CallSpec, Kind>>,
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

/// How far the refinement of one kind of calls is.
pub(crate) struct Kind {
    pub(crate) refinement: Refinement,
    /// By candidate.
    pub(crate) plans: Vec<Option<Arc<dyn Ready>>>,
    /// The number of the last call of the rest, which begins a quarter of the window.
    pub(crate) rests_until: Option<u64>,
}

impl Refinements {
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

    /// Takes what is known of a kind of calls, with the era in which it was taken: that of a new
    /// kind among `candidates`, if nothing is.
    pub(crate) fn take(
        &self,
        call: &CallSpec,
        candidates: impl FnOnce() -> Vec<Candidate>,
    ) -> (Kind, u64) {
        let kind = self.kinds.borrow_mut().remove(call);
        let kind = kind.unwrap_or_else(|| {
            self.made.set(self.made.get() + 1);
            Kind::new(candidates(), self.share)
        });
        (kind, self.era.get())
    }

    /// Puts back what was taken, unless all was forgotten since.
    pub(crate) fn put_back(&self, call: &CallSpec, kind: Kind, era: u64) {
        if self.is_known(era) {
            self.kinds.borrow_mut().insert(*call, kind);
        }
    }

    /// Whether what was taken in this era is not forgotten.
    pub(crate) fn is_known(&self, era: u64) -> bool {
        self.era.get() == era
    }

    /// Has kept plans expire before the call after number `until`.
    pub(crate) fn wake_by(&self, until: u64) {
        self.wakes.set(self.wakes.get().min(until));
    }

    /// The plan of the call that adds times up, made by `prepare` when it is first asked for.
    pub(crate) fn deciding(
        &self,
        prepare: impl FnOnce() -> Result<Arc<dyn Ready>>,
    ) -> Result<Arc<dyn Ready>> {
        if let Some(ready) = &*self.deciding.borrow() {
            return Ok(Arc::clone(ready));
        }
        let ready = prepare()?;
        Ok(Arc::clone(self.deciding.borrow_mut().insert(ready)))
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
