//! The tuner's interfaces to the program: candidates and estimates, and their measurement.

use std::{collections::BTreeSet, error::Error, sync::OnceLock, time::Duration, time::Instant};

use consort_fabric::{
    CallSpec, Candidate, Collective, OperatorClass, Query, SyncModes, statistics::Summary,
};

use crate::{TransferClass, query::canonical, wisdom::Revisions};

/// The available algorithms, and a model of their times.
///
/// Results depend only on the machine and the team: they are equal on every PE and in every call.
pub trait Catalog {
    /// Returns every candidate that can serve `query`, each once; at least one for every query.
    fn candidates(&self, query: &Query) -> Vec<Candidate>;

    /// Returns the model's estimate for `candidate`, in nanoseconds per call. A value that is not
    /// finite ranks last.
    fn estimate_ns(&self, query: &Query, candidate: &Candidate) -> f64;

    /// Returns whether `candidate` can serve `call`. For each candidate, the sizes that it can
    /// serve must form one interval.
    fn serves(&self, call: &CallSpec, candidate: &Candidate) -> bool {
        self.candidates(&call.query()).contains(candidate)
    }

    /// Returns a number for what `candidate` does at `query`. Candidates with equal numbers are one
    /// algorithm under two names, and it is enough to measure one. `None` if the number is unknown.
    fn fingerprint(&self, query: &Query, candidate: &Candidate) -> Option<u64> {
        let _ = (query, candidate);
        None
    }

    /// Returns the revisions of the algorithms. By default, all algorithms have revision 1.
    fn revisions(&self) -> Revisions {
        offered(self)
    }
}

/// Returns the algorithms of `catalog` for a fixed set of queries, each with revision 1.
fn offered<C: Catalog + ?Sized>(catalog: &C) -> Revisions {
    let mut offered = BTreeSet::new();
    for collective in Collective::EVERY {
        for sync in [SyncModes::STRICT, SyncModes::MINE, SyncModes::LOOSE] {
            for (pes, bytes) in [(2, 8), (2, 1 << 20), (16, 8), (16, 4096), (16, 1 << 20)] {
                for (operator, symmetric) in
                    [(OperatorClass::Commutative, true), (OperatorClass::Ordered, false)]
                {
                    let query = Query { collective, sync, pes, bytes, operator, symmetric };
                    let candidates = catalog.candidates(&canonical(&query));
                    offered.extend(candidates.into_iter().map(|one| (collective, one.algorithm)));
                }
            }
        }
    }
    Revisions::of(offered.into_iter().map(|(collective, name)| (collective, name, 1)))
}

/// A catalogue whose candidates can also be measured.
pub trait Workbench: Catalog {
    /// The reason why nothing can be measured: for example, a job does not start or a PE failed.
    type Error: Error;

    /// Measures `candidates` at `query` in turn, in one launch, for about `budget` in total.
    /// Returns the blocks of each candidate, in order; `None` if it could not be measured.
    ///
    /// # Errors
    /// If measuring fails as a whole. The search then ends and keeps its results.
    fn launch(
        &mut self,
        query: &Query,
        candidates: &[Candidate],
        budget: Duration,
    ) -> Result<Vec<Option<Vec<Block>>>, Self::Error>;

    /// Waits until others leave the cores alone, for at most `most`. Returns whether they do. By
    /// default the workbench cannot tell, and does not wait.
    fn wait_for_cores(&mut self, most: Duration) -> bool {
        let _ = most;
        false
    }

    /// Makes launches end within `left`, whatever they have measured by then. With `None`, they
    /// measure each candidate at least once.
    fn end_within(&mut self, left: Option<Duration>) {
        let _ = left;
    }

    /// Returns the time since a fixed moment, on the clock that the search uses for its budget.
    fn now(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

/// A block of calls of one candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Nanoseconds per call.
    pub ns: f64,
    /// How far apart the cores were, if known.
    pub class: Option<TransferClass>,
    /// The turn of its candidate in the launch, from 0: blocks of one turn are neighbours in time.
    pub turn: u32,
    /// Whether others used its cores meanwhile, as far as the system reports it. Such a block does
    /// not count.
    pub is_disturbed: bool,
}

/// The measurement of one candidate, in nanoseconds per call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The median.
    pub median_ns: f64,
    /// The 95 % confidence interval of the median: low, high.
    pub ci95_ns: (f64, f64),
    /// The 99th percentile.
    pub p99_ns: f64,
    /// The number of launches in which it was measured; the interval is over these.
    pub launches: u32,
    /// How far apart the cores were, if known.
    pub class: Option<TransferClass>,
}

impl Sample {
    /// Creates the statistics of blocks of calls in `launches` launches, in nanoseconds per call.
    #[must_use]
    pub fn of(blocks: &Summary, launches: usize, class: Option<TransferClass>) -> Self {
        Self {
            median_ns: blocks.median,
            ci95_ns: blocks.ci95,
            p99_ns: blocks.p99,
            launches: u32::try_from(launches).unwrap_or(u32::MAX),
            class,
        }
    }
}
