//! The trait of programs made of parallel regions.

use std::time::Duration;

use anyhow::Result;

use crate::peers::fork_join::ForkJoin;

/// A program made of parallel regions.
pub(super) trait RegionProgram {
    /// Performs one iteration.
    ///
    /// # Errors
    /// If the library reports one.
    fn iterate(&mut self, threads: &mut dyn ForkJoin) -> Result<()>;

    /// Returns the results so far, which do not depend on the number of threads.
    fn results(&self) -> Vec<u64>;

    /// Returns to the state before the first iteration.
    fn restart(&mut self);

    /// Returns the time since the start that is not part of the iterations.
    fn idle(&self) -> Duration {
        Duration::ZERO
    }
}
