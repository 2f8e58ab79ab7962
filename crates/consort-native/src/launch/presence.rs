//! Whether a thread runs a PE, and for how long none has.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use consort_fabric::Rank;

use super::job::Job;
use crate::state::header::PRESENT;

impl Job {
    /// Records that a thread runs a PE, by its rank in the world.
    pub fn arrive(&self, pe: Rank) {
        self.states[pe.index()].absent_since.store(PRESENT, Relaxed);
    }

    /// Records that no thread runs a PE any more, if threads join the job.
    pub fn depart(&self, pe: Rank) {
        if self.config().joining.is_some() {
            self.states[pe.index()].absent_since.store(self.now_ns(), Relaxed);
        }
    }

    /// How long no thread has run a PE; `None` if one does.
    pub(crate) fn absent_for(&self, pe: Rank) -> Option<Duration> {
        let since = self.states[pe.index()].absent_since.load(Relaxed);
        (since != PRESENT).then(|| Duration::from_nanos(self.now_ns().saturating_sub(since)))
    }
}
