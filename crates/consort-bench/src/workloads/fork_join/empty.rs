//! Empty regions. Each rank only counts its calls, on its own cache lines.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Result;

use super::parts::RegionProgram;
use crate::peers::fork_join::ForkJoin;

/// A rank's calls.
#[derive(Default)]
#[repr(align(128))]
struct Calls(AtomicU64);

/// Empty regions.
pub(super) struct Empty {
    calls: Box<[Calls]>,
    /// The number of ranks in the last region.
    ranks: usize,
}

impl Empty {
    pub(super) fn new(threads: usize) -> Self {
        Self { calls: (0..threads).map(|_| Calls::default()).collect(), ranks: 0 }
    }
}

impl RegionProgram for Empty {
    fn iterate(&mut self, threads: &mut dyn ForkJoin) -> Result<()> {
        self.ranks = threads.threads();
        threads.run(1, &|_, rank| {
            // One thread has a rank, so this needs no atomic addition.
            let calls = &self.calls[rank].0;
            calls.store(calls.load(Relaxed) + 1, Relaxed);
        })
    }

    /// The fewest and the most calls of a rank.
    fn results(&self) -> Vec<u64> {
        let calls = || self.calls[..self.ranks].iter().map(|calls| calls.0.load(Relaxed));
        [calls().min(), calls().max()].map(Option::unwrap_or_default).to_vec()
    }

    fn restart(&mut self) {
        self.calls.iter_mut().for_each(|calls| *calls = Calls::default());
    }
}
