//! What a search tells: how far it is, what it won, and what became of it.

use std::time::Duration;

use consort_fabric::{Candidate, Query};

use crate::{Entry, Wisdom};

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Queries answered, measured or kept.
    pub done_count: usize,
    /// Queries there are to answer, as far as is known: refinement adds to it.
    pub total_count: usize,
    /// Time since the start.
    pub elapsed: Duration,
}

/// Who is told how the search goes.
pub trait Observer {
    /// `candidates` are about to be measured at `query`.
    fn measuring(&mut self, progress: &Progress, query: &Query, candidates: &[Candidate]) {
        let _ = (progress, query, candidates);
    }

    /// `entry` was won; `wisdom` has it already and can be saved.
    fn won(&mut self, progress: &Progress, entry: &Entry, wisdom: &Wisdom) {
        let _ = (progress, entry, wisdom);
    }
}

/// Nobody watches.
impl Observer for () {}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything was looked at.
    Complete,
    /// The time was over.
    OutOfBudget,
    /// The stop flag was set.
    Stopped,
}

/// What a search did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Why it ended.
    pub ending: Ending,
    /// Queries newly measured.
    pub measured_count: usize,
    /// Of these, queries that refine the grid where the winner changes.
    pub refined_count: usize,
    /// Queries whose entry was kept, as it was won at no less rigour.
    pub kept_count: usize,
    /// Queries of the grid that have only an estimate.
    pub estimated_count: usize,
    /// Time it took.
    pub elapsed: Duration,
}
