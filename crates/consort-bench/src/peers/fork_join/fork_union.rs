//! fork_union, which needs a C++ compiler, so it is compiled only with its feature.

#[cfg(feature = "fork_union")]
pub(super) use with_feature::create;

#[cfg(not(feature = "fork_union"))]
use super::threads::{ForkJoin, ThreadPlacement};

/// Refuses, because this program was compiled without the library.
#[cfg(not(feature = "fork_union"))]
pub(super) fn create(_: &ThreadPlacement) -> anyhow::Result<Box<dyn ForkJoin>> {
    anyhow::bail!("build `consort` with `--features fork_union`, which needs a C++ compiler")
}

#[cfg(feature = "fork_union")]
mod with_feature {
    #![expect(unsafe_code, reason = "the trait ForkJoin is unsafe to implement")]

    use anyhow::{Result, anyhow};
    use fork_union::ThreadPool;

    use crate::peers::fork_join::threads::{ForkJoin, Part, ThreadPlacement};

    struct ForkUnion(ThreadPool);

    /// Creates the threads.
    pub(in crate::peers) fn create(placement: &ThreadPlacement) -> Result<Box<dyn ForkJoin>> {
        let pool = ThreadPool::try_spawn(placement.threads);
        let mut pool = ForkUnion(pool.map_err(|why| anyhow!("fork_union: {why:?}"))?);
        pool.run(1, &|_, rank| placement.pin(rank))?;
        Ok(Box::new(pool))
    }

    // SAFETY: `for_threads` calls the closure once on each thread, and `join` returns when all calls
    // have returned.
    unsafe impl ForkJoin for ForkUnion {
        fn threads(&self) -> usize {
            self.0.threads()
        }

        fn run(&mut self, steps: usize, part: Part<'_>) -> Result<()> {
            for step in 0..steps {
                self.0.for_threads(|rank, _| part(step, rank)).join();
            }
            Ok(())
        }
    }
}
