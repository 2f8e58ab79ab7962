//! The trait of threads that run regions, and their places.
#![expect(unsafe_code, reason = "the trait promises what its callers' unsafe code relies on")]

use std::path::PathBuf;

use anyhow::Result;
use consort_machine::affinity::{self, CpuId};

/// The part of a rank in a step: called with the step and the rank.
pub type Part<'p> = &'p (dyn Fn(usize, usize) + Sync);

/// Threads that run regions together: fork, then join.
///
/// # Safety
/// [`ForkJoin::run`] calls the part once for each step and rank. No call of a step begins before
/// all calls of the step before have ended, and each of these happens before it. When `run`
/// returns, also with an error, no call is running, and all calls happened before.
pub unsafe trait ForkJoin {
    /// Returns the number of ranks.
    fn threads(&self) -> usize;

    /// Runs a region of this many steps, with a barrier between two steps. A library that has no
    /// barrier in a region runs a region for each step.
    ///
    /// # Errors
    /// If the library reports one.
    fn run(&mut self, steps: usize, part: Part<'_>) -> Result<()>;
}

/// The number of threads, and their places.
#[derive(Clone, Debug)]
pub struct ThreadPlacement {
    /// The number of threads, including the calling one.
    pub threads: usize,
    /// The processor of each thread, if each has one.
    pub cpus: Option<Vec<CpuId>>,
    /// The compiled library, if the way needs one.
    pub compiled_library: Option<PathBuf>,
}

impl ThreadPlacement {
    /// Binds the calling thread to the processor of a rank. A thread that cannot be bound runs where
    /// the system puts it.
    pub(super) fn pin(&self, rank: usize) {
        let cpu = self.cpus.as_ref().and_then(|cpus| cpus.get(rank));
        let _ = cpu.map(|cpu| affinity::pin(*cpu));
    }
}
