//! Libraries that run regions.
//!
//! rayon and paralight divide a region in their usual way, with a parallel iterator over the ranks;
//! chili halves the ranks. In these libraries, an idle thread may take over ranks of another
//! thread. The operating system places scoped threads, and the threads of chili.
#![expect(unsafe_code, reason = "the trait ForkJoin is unsafe to implement")]

use std::{num::NonZero, ops::Range, thread};

use anyhow::{Context, Result};
use consort::{Job, Pool, Waiting};
use paralight::{
    iter::{ExactParallelSourceExt, IntoExactParallelSource, ParallelIteratorExt},
    threads::{CpuPinningPolicy, RangeStrategy, ThreadCount},
};
use rayon::{
    ThreadPool, ThreadPoolBuilder,
    iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator},
};

use super::threads::{ForkJoin, Part, ThreadPlacement};

/// Consort's pool. Steps are separated by barriers of its team.
pub(super) struct ConsortPool(Pool);

impl ConsortPool {
    pub(super) fn new(placement: &ThreadPlacement, waiting: Waiting) -> Result<Self> {
        let mut job = Job::threads(placement.threads).waiting(waiting);
        if placement.cpus.is_some() {
            // The library finds out once which cores the process may use. That must precede the
            // pinning of this thread.
            let _ = consort::tune::Algorithms::here();
            job = job.pinned();
        }
        placement.pin(0);
        Ok(Self(job.pool()?))
    }
}

// SAFETY: the program of each PE calls the part once in each step. `Team::barrier` and `Pool::run`
// order the calls; `Pool::run` returns when all PEs have left the region.
unsafe impl ForkJoin for ConsortPool {
    fn threads(&self) -> usize {
        self.0.size()
    }

    fn run(&mut self, steps: usize, part: Part<'_>) -> Result<()> {
        self.0.run(|pe| {
            let world = pe.world();
            let rank = world.rank().0 as usize;
            for step in 0..steps {
                if step > 0 {
                    world.barrier()?;
                }
                part(step, rank);
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// rayon, with the calling thread as one of its threads.
pub(super) struct Rayon(ThreadPool);

impl Rayon {
    pub(super) fn new(placement: &ThreadPlacement) -> Result<Self> {
        let threads = ThreadPoolBuilder::new().num_threads(placement.threads);
        let there = placement.clone();
        placement.pin(0);
        let pool = threads.start_handler(move |index| there.pin(index)).use_current_thread();
        Ok(Self(pool.build().context("rayon has no threads")?))
    }
}

// SAFETY: the iterator has each rank once, and `for_each` returns when all calls have returned.
unsafe impl ForkJoin for Rayon {
    fn threads(&self) -> usize {
        self.0.current_num_threads()
    }

    fn run(&mut self, steps: usize, part: Part<'_>) -> Result<()> {
        let ranks = 0..self.threads();
        for step in 0..steps {
            let ranks = IntoParallelIterator::into_par_iter(ranks.clone()).with_max_len(1);
            self.0.install(|| ranks.for_each(|rank| part(step, rank)));
        }
        Ok(())
    }
}

/// chili, with the calling thread as one of its threads.
pub(super) struct Chili {
    pool: chili::ThreadPool,
    threads: usize,
}

impl Chili {
    pub(super) fn new(placement: &ThreadPlacement) -> Result<Self> {
        let threads = placement.threads;
        let thread_count = Some(NonZero::new(threads).context("chili needs a thread")?);
        let config = chili::Config { thread_count, ..chili::Config::default() };
        Ok(Self { pool: chili::ThreadPool::with_config(config), threads })
    }

    /// Calls `part` with each rank, and may give half of the ranks to another thread.
    fn halve(scope: &mut chili::Scope<'_>, ranks: Range<usize>, part: &(dyn Fn(usize) + Sync)) {
        let middle = usize::midpoint(ranks.start, ranks.end);
        if middle == ranks.start {
            return part(ranks.start);
        }
        scope.join(
            |scope| Self::halve(scope, ranks.start..middle, part),
            |scope| Self::halve(scope, middle..ranks.end, part),
        );
    }
}

// SAFETY: `halve` divides the ranks until each is alone, and `join` returns when both halves have.
unsafe impl ForkJoin for Chili {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&mut self, steps: usize, part: Part<'_>) -> Result<()> {
        let mut scope = self.pool.scope();
        for step in 0..steps {
            Self::halve(&mut scope, 0..self.threads, &|rank| part(step, rank));
        }
        Ok(())
    }
}

/// paralight. The calling thread only waits.
pub(super) struct Paralight(paralight::threads::ThreadPool);

impl Paralight {
    pub(super) fn new(placement: &ThreadPlacement) -> Result<Self> {
        let pinned = placement.cpus.is_some();
        let builder = paralight::threads::ThreadPoolBuilder {
            num_threads: ThreadCount::try_from(placement.threads)?,
            range_strategy: RangeStrategy::WorkStealing,
            cpu_pinning: if pinned { CpuPinningPolicy::IfSupported } else { CpuPinningPolicy::No },
        };
        Ok(Self(builder.build()))
    }
}

// SAFETY: the source has each rank once, and `for_each` returns when all calls have returned.
unsafe impl ForkJoin for Paralight {
    fn threads(&self) -> usize {
        self.0.num_threads().get()
    }

    fn run(&mut self, steps: usize, part: Part<'_>) -> Result<()> {
        for step in 0..steps {
            // Not the method of rayon.
            let ranks = IntoExactParallelSource::into_par_iter(0..self.threads());
            ranks.with_thread_pool(&mut self.0).for_each(|rank| part(step, rank));
        }
        Ok(())
    }
}

/// Scoped threads of the standard library, new ones in each step.
pub(super) struct Scope(pub(super) usize);

// SAFETY: each rank has a thread or is the caller. The scope joins all threads before it returns.
unsafe impl ForkJoin for Scope {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&mut self, steps: usize, part: Part<'_>) -> Result<()> {
        for step in 0..steps {
            thread::scope(|scope| {
                for rank in 1..self.0 {
                    scope.spawn(move || part(step, rank));
                }
                part(step, 0);
            });
        }
        Ok(())
    }
}

/// The calling thread alone.
pub(super) struct Serial;

// SAFETY: one thread makes all calls, one after the other.
unsafe impl ForkJoin for Serial {
    fn threads(&self) -> usize {
        1
    }

    fn run(&mut self, steps: usize, part: Part<'_>) -> Result<()> {
        (0..steps).for_each(|step| part(step, 0));
        Ok(())
    }
}
