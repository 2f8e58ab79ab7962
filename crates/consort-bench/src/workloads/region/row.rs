//! A row: one library's way to do a kind of work, timed a block at a time.
//!
//! Each block has separate threads: its row creates them, warms up until the time of a region is
//! known, times as many regions as fit into the block, and ends the threads. So no thread of
//! another row spins or yields at the same time.

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use consort::{Job, Pool};
use consort_machine::{
    affinity::{CpuId, Pinned},
    topology::Topology,
};

use crate::{
    harness::block_time,
    peers::openmp::{OpenMp, OpenMpLaunch},
};

/// The peer that is a C program.
pub(super) const OPENMP: &str = "OpenMP";
/// The time after which its block is considered hanging.
const OPENMP_LIMIT: Duration = Duration::from_secs(10);
/// The number of doubles that a PE adds up.
pub(super) const LEN: usize = 1024;
/// Warm-up continues until a number of regions takes this long. `openmp_bench.c` does the same.
const WARM_UP: Duration = Duration::from_micros(50);
/// The fastest of this many tries counts, because one may be interrupted...
const TRIES: u32 = 3;
/// ... unless a try takes longer than an interruption.
const RETRY: Duration = Duration::from_millis(10);
const MOST_REGIONS: u64 = 1_000_000;

consort_fabric::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Work {
        Empty = "empty region",
        /// A region in which each PE adds up a part of an array; afterwards the total is known.
        Sum = "sum in a region",
        Barrier = "barrier",
    }
}

/// A library's way to do a kind of work.
pub(super) struct Row {
    pub(super) work: Work,
    pub(super) name: &'static str,
    /// The library; `None` for Consort.
    pub(super) peer: Option<&'static str>,
    /// Times one block, in nanoseconds per region or barrier.
    pub(super) block_ns: fn(&Setting<'_>) -> Result<f64>,
}

#[derive(Debug)]
pub(super) struct Setting<'s> {
    pub(super) pes: u32,
    /// The processor of each PE, if each has one.
    pub(super) cpus: Option<Vec<CpuId>>,
    /// [`LEN`] doubles of value 1 for each PE.
    pub(super) data: Vec<f64>,
    /// `None` if no compiler has OpenMP.
    pub(super) openmp: Option<&'s OpenMp>,
    /// Ends timing in another process.
    pub(super) stop: &'s AtomicBool,
}

impl<'s> Setting<'s> {
    pub(super) fn new(pes: u32, openmp: Option<&'s OpenMp>, stop: &'s AtomicBool) -> Self {
        let cpus = Topology::discover().placement(pes as usize);
        Self { pes, cpus, data: vec![1.0; LEN * pes as usize], openmp, stop }
    }

    pub(super) const fn block(&self) -> Duration {
        block_time(self.cpus.is_some())
    }

    pub(super) fn cpu(&self, index: usize) -> Option<CpuId> {
        Some(self.cpus.as_ref()?[index])
    }

    /// Calls `timed` with a pool. The calling thread is its PE 0, and stays on its core.
    pub(super) fn with_pool<R>(&self, timed: impl FnOnce(&Pool) -> Result<R>) -> Result<R> {
        // The library finds out once which cores the process may use. That must precede the pinning
        // of its first thread, which is this one.
        let _ = consort::tune::Algorithms::here();
        let _pinned =
            self.cpu(0).map(Pinned::new).transpose().context("cannot pin a thread to its core")?;
        timed(&Job::threads(self.pes as usize).pinned().pool()?)
    }

    /// Times one block of a work of the C program.
    pub(super) fn openmp_ns(&self, work: &str) -> Result<f64> {
        let program = self.openmp.context("no compiler with OpenMP")?;
        let launch = OpenMpLaunch {
            work,
            pes: self.pes,
            cpus: self.cpus.as_deref(),
            waiting: None,
            bytes: (LEN * size_of::<f64>()) as u64,
            block: self.block(),
            blocks: 1,
            limit: OPENMP_LIMIT,
            stop: self.stop,
        };
        Ok(program.samples_ns(&launch)?[0])
    }

    /// Times one block of regions by the clock of the thread that begins them.
    pub(super) fn regions_ns(&self, mut region: impl FnMut() -> Result<()>) -> Result<f64> {
        self.block_ns(|count| {
            let begun = Instant::now();
            (0..count).try_for_each(|_| region())?;
            Ok(begun.elapsed())
        })
    }

    /// Times one block. `regions` runs a given number of regions and returns their time.
    pub(super) fn block_ns(&self, mut regions: impl FnMut(u64) -> Result<Duration>) -> Result<f64> {
        let (mut count, mut tries, mut fastest) = (1, 0, Duration::MAX);
        loop {
            fastest = fastest.min(regions(count)?);
            tries += 1;
            if fastest < WARM_UP && count < MOST_REGIONS {
                (count, tries, fastest) = (4 * count, 0, Duration::MAX);
            } else if tries == TRIES || fastest >= RETRY {
                break;
            }
        }
        let count = fitting(self.block(), count, fastest);
        Ok(regions(count)?.as_secs_f64() * 1e9 / count as f64)
    }
}

/// Returns the number of regions that fit into a block, if `count` of them take `taken`.
fn fitting(block: Duration, count: u64, taken: Duration) -> u64 {
    let fitting = block.as_nanos() * u128::from(count) / taken.as_nanos().max(1);
    u64::try_from(fitting).map_or(MOST_REGIONS, |fitting| fitting.clamp(1, MOST_REGIONS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_as_many_regions_as_fit() {
        let (ns, ms) = (Duration::from_nanos, Duration::from_millis);
        let block = Duration::from_micros(300);
        assert_eq!(fitting(block, 64, ns(64_000)), 300);
        assert_eq!(fitting(block, 1, ms(20)), 1);
        assert_eq!(fitting(block, 1 << 20, ns(0)), MOST_REGIONS);
    }

    #[test]
    fn block_time_is_per_region() {
        let never = AtomicBool::new(false);
        let setting = Setting::new(1, None, &never);
        let mut asked: Vec<u64> = Vec::new();
        let ns = setting.block_ns(|count| {
            asked.push(count);
            Ok(Duration::from_nanos(1000 * count))
        });
        assert_eq!(ns.unwrap(), 1000.0);
        assert_eq!(asked[..4], [1, 4, 16, 64]);
        assert_eq!(asked.last(), Some(&300));
    }
}
