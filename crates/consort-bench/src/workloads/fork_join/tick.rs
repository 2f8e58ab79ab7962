//! The tick of a control loop or a game: bursts of short jobs, with serial work between them, then
//! sleep until the next tick.
//!
//! A burst is a region in which the threads take jobs from a shared counter, so a late thread gets
//! fewer jobs. The time of a tick does not include the sleep. But a library whose threads wait for
//! long without sleeping uses processor time during it.

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::parts::RegionProgram;
use crate::peers::fork_join::ForkJoin;

const BURSTS: u64 = 12;
/// The jobs of a burst.
const JOBS: usize = 16;
/// The steps of the shortest job and of the serial work: a step takes a bit more than 1 ns.
const JOB_STEPS: u64 = 10_000;
const SERIAL_STEPS: u64 = 160_000;
const SLEEP: Duration = Duration::from_millis(3);

/// Ticks with the results of their jobs.
pub(super) struct Tick {
    jobs: Vec<AtomicU64>,
    serial: u64,
    slept: Duration,
}

impl Tick {
    pub(super) fn new() -> Self {
        let jobs = (0..JOBS).map(|_| AtomicU64::new(0)).collect();
        Self { jobs, serial: 1, slept: Duration::ZERO }
    }
}

#[inline(never)]
fn work(seed: u64, steps: u64) -> u64 {
    (0..steps).fold(seed, |value, step| black_box(value.wrapping_mul(31).wrapping_add(step)))
}

impl RegionProgram for Tick {
    fn iterate(&mut self, threads: &mut dyn ForkJoin) -> Result<()> {
        for _ in 0..BURSTS {
            self.serial = work(self.serial, SERIAL_STEPS);
            let (serial, jobs, next) = (self.serial, &self.jobs, AtomicUsize::new(0));
            threads.run(1, &|_, _| {
                // Relaxed: the counter publishes no other data.
                while let Some(job) = jobs.get(next.fetch_add(1, Relaxed)) {
                    let seed = job.load(Relaxed);
                    // From one to three times as long as the shortest.
                    let steps = JOB_STEPS + seed.wrapping_add(serial) % (2 * JOB_STEPS);
                    job.store(work(seed, steps), Relaxed);
                }
            })?;
        }
        let begun = Instant::now();
        thread::sleep(SLEEP);
        self.slept += begun.elapsed();
        Ok(())
    }

    fn results(&self) -> Vec<u64> {
        let jobs = self.jobs.iter().map(|job| job.load(Relaxed));
        jobs.chain([self.serial]).collect()
    }

    fn restart(&mut self) {
        *self = Self::new();
    }

    fn idle(&self) -> Duration {
        self.slept
    }
}
