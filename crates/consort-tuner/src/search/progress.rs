//! The reports of a search: its progress, each entry won, and its outcome.

use std::time::Duration;

use consort_fabric::{Candidate, Query};

use crate::{Entry, Wisdom};

/// The progress of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Queries that are done, measured or kept.
    pub done_count: usize,
    /// Queries in all, as far as is known: refinement adds to it.
    pub total_count: usize,
    /// Time since the start.
    pub elapsed: Duration,
}

/// Receives the reports of a search.
pub trait Observer {
    /// `candidates` are about to be measured at `query`.
    fn measuring(&mut self, progress: &Progress, query: &Query, candidates: &[Candidate]) {
        let _ = (progress, query, candidates);
    }

    /// `entry` was won; `wisdom` contains it already and can be saved.
    fn won(&mut self, progress: &Progress, entry: &Entry, wisdom: &Wisdom) {
        let _ = (progress, entry, wisdom);
    }
}

/// Ignores all reports.
impl Observer for () {}

/// The reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
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
    pub ending: Ending,
    /// Queries newly measured.
    pub measured_count: usize,
    /// Of these, queries that refine the grid where the winner changes.
    pub refined_count: usize,
    /// Queries whose entry was kept, since it was won at the same or a higher rigour.
    pub kept_count: usize,
    /// Queries of the grid that have only an estimate.
    pub estimated_count: usize,
    /// The time that it took.
    pub elapsed: Duration,
}
