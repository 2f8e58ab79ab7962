//! Choices that are refined while the program runs: the candidate for each call, and the times of
//! calls.
//!
//! `consort_tuner::online` decides which candidates are tried and how often. This module counts and
//! times calls. All PEs of a team make the same calls, so their counts agree. Before a decision,
//! they add up their times in an all-reduce, so they make the same decision. A kind of call *rests*
//! while no candidate is tried for it: its plan is cached like any other, and a call costs as much
//! as without refinement.
//!
//! A kind is a set of calls, and all PEs must put the same calls into it. It is identified by
//! names, not by addresses, because PEs may make a call at different call sites. Cached plans are
//! found by addresses, so one PE may have a cached plan when another has none. That must not change
//! which candidate serves a call:
//!
//! | a call of a kind that rests | is served by |
//! | --- | --- |
//! | its plan is cached | that plan, which is the incumbent's |
//! | its plan is not cached, or was replaced | the incumbent |
//! | it begins the quarter of the window in which the rest ends | the incumbent, for the last time |
//!
//! A rest ends when a quarter of the window begins, because all cached plans expire during the call
//! that begins the quarter. So that call still rests, and on all PEs the next call of its kind
//! finds no plan.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    sync::Arc,
};

use consort_fabric::{CallSpec, Candidate};
use consort_tuner::{Entry, online::Refinement};

use super::plans::Ready;
use crate::Result;

/// The largest number of kinds of calls refined at a time. More may be added until the next quarter
/// of the window begins.
const MOST_KINDS: usize = 256;

/// The state of refinement of a team on one PE.
pub(crate) struct Refinements {
    share: f64,
    kinds: RefCell<HashMap<CallSpec, Kind>>,
    /// The number of kinds added since all were last dropped; the same on all PEs.
    made: Cell<usize>,
    /// The number of times that all kinds were dropped.
    era: Cell<u64>,
    /// The first call before which cached plans must expire, because the rest of some kind ends
    /// there. It may be earlier than needed, never later.
    wakes: Cell<u64>,
    /// The plan of the all-reduce that adds up times, separate from the program's own plans.
    deciding: RefCell<Option<Arc<dyn Ready>>>,
}

/// The state of refinement of one kind of calls.
pub(crate) struct Kind {
    pub(crate) refinement: Refinement,
    /// The plans created so far, by candidate.
    pub(crate) plans: Vec<Option<Arc<dyn Ready>>>,
    /// The number of the last call of the rest, which begins a quarter of the window.
    pub(crate) rests_until: Option<u64>,
}

impl Refinements {
    /// Creates a refinement that costs at most `share` of the time in calls.
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

    /// Returns whether cached plans must expire before call number `call`, which begins a quarter
    /// of the window. They must if this call is the last of some kind's rest, or if there are too
    /// many kinds, with the plans that they hold: then all kinds are dropped.
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

    /// Takes the state of a kind of calls, or a new one among `candidates`, and the era in which it
    /// was taken.
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

    /// Puts back the state of a kind, unless all kinds were dropped since it was taken.
    pub(crate) fn put_back(&self, call: &CallSpec, kind: Kind, era: u64) {
        if self.is_known(era) {
            self.kinds.borrow_mut().insert(*call, kind);
        }
    }

    /// Returns whether the state of a kind that was taken in this era has not been dropped since.
    pub(crate) fn is_known(&self, era: u64) -> bool {
        self.era.get() == era
    }

    /// Returns the results so far, one for each query. If several kinds of calls have the same
    /// query, because wisdom does not record where they differ (such as the root), it returns the
    /// fastest.
    pub(crate) fn found(&self) -> Vec<Entry> {
        let mut found: Vec<Entry> = Vec::new();
        for (call, kind) in &*self.kinds.borrow() {
            let Some(entry) = kind.refinement.found(call) else { continue };
            match found.iter_mut().find(|known| known.query == entry.query) {
                None => found.push(entry),
                Some(known) if entry.median_ns < known.median_ns => *known = entry,
                Some(_) => {}
            }
        }
        found
    }

    /// Makes cached plans expire before the call after number `until`.
    pub(crate) fn wake_by(&self, until: u64) {
        self.wakes.set(self.wakes.get().min(until));
    }

    /// Returns the plan of the all-reduce that adds up times; `prepare` creates it at first.
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

    /// Drops all kinds, because algorithms were forced or are chosen again.
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
