//! The reports of a search: its progress, each entry won, and its outcome.

use std::time::Duration;

use consort_fabric::{Candidate, Query};

use crate::{Entry, Wisdom};

/// The progress of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of queries that are done, measured or kept.
    pub done_count: usize,
    /// The number of all queries, as far as known: refinement adds to it.
    pub total_count: usize,
    /// The time since the start.
    pub elapsed: Duration,
}

/// Receives the reports of a search.
pub trait Observer {
    /// `candidates` are about to be measured at `query`.
    fn measuring(&mut self, progress: &Progress, query: &Query, candidates: &[Candidate]) {
        let _ = (progress, query, candidates);
    }

    /// Others use the cores. The search waits for them, for at most `left`.
    fn waiting(&mut self, progress: &Progress, left: Duration) {
        let _ = (progress, left);
    }

    /// `entry` was won; `wisdom` already contains it and can be saved.
    fn entry_measured(&mut self, progress: &Progress, entry: &Entry, wisdom: &Wisdom) {
        let _ = (progress, entry, wisdom);
    }
}

/// Ignores all reports.
impl Observer for () {}

/// The reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// All queries were visited.
    Complete,
    /// The time was over.
    OutOfBudget,
    /// The stop flag was set.
    Stopped,
}

/// The outcome of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The reason why it ended.
    pub ending: StopReason,
    /// The number of newly measured queries.
    pub measured_count: usize,
    /// How many of these refine the grid where the winner changes.
    pub refined_count: usize,
    /// The number of queries whose entry was kept because it was won at the same or a higher
    /// rigour.
    pub kept_count: usize,
    /// The number of queries of the grid that have only an estimate.
    pub estimated_count: usize,
    /// The duration of the search.
    pub elapsed: Duration,
    /// How much of it the search has waited for cores that others used.
    pub waited: Duration,
}
