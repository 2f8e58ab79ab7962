//! A nonblocking broadcast with computation of the same length during it.
//!
//! - *late root*: the root computes before it starts the broadcast. The others compute for as long
//!   as they would wait in a blocking broadcast, and then wait for the rest. The result is compared
//!   with the longer of the two times.
//! - *busy*: all PEs start, compute for as long as the broadcast takes, and wait. The result is
//!   compared with the sum.
//!
//! Copying needs a processor. So computation can overlap with waiting, but not with other work on
//! the same core. Every 20 us the computation calls the library, as a program would from time to
//! time.
//!
//! Source of the question: nonblocking collectives in Nishtala, Zheng, Hargrove and Yelick 2011,
//! section 3.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use consort::{Job, Pe, Rank, Result, Team, Waiting, ops::Max};
use consort_fabric::statistics::Summary;

use crate::harness::{Figure, Mode};

/// The default sizes.
pub const SIZES_BYTES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];
/// The delay of a late root, in broadcasts.
const LATE: f64 = 10.0;
/// The computing time between two calls of the library.
const SLICE_NS: f64 = 20_000.0;

const ROOT: Rank = Rank(0);
/// The length of a blocking broadcast is the median of this many last ones, because cores move
/// apart and together during the measurement.
const RECENT: usize = 15;

/// One sample of each kind, in nanoseconds on the slowest PE.
struct Sample {
    /// A blocking broadcast.
    alone_ns: f64,
    /// The median of the last blocking broadcasts, which is the computing time.
    typical_ns: f64,
    /// A broadcast with a late root, with computation.
    late_ns: f64,
    /// A broadcast while all PEs compute.
    busy_ns: f64,
}

/// The times of one size, over all samples.
pub struct Overlap {
    /// The size of the broadcast.
    pub bytes: usize,
    /// The number of PEs.
    pub pes: u32,
    /// A blocking broadcast, in nanoseconds.
    pub alone: Summary,
    /// A broadcast with a late root, with computation, in nanoseconds.
    pub late: Summary,
    /// A broadcast while all PEs compute, in nanoseconds.
    pub busy: Summary,
    /// The time with a late root, as a multiple of the longer of computing and waiting.
    pub of_longer: f64,
    /// The time while all compute, as a multiple of the sum of both.
    pub of_sum: f64,
}

/// Measures each size, until `stop` is set. Returns the sizes that were begun by then.
///
/// # Errors
/// If a job fails.
pub fn measure(
    pes: u32,
    sizes_bytes: &[usize],
    waiting: Option<Waiting>,
    budget: Duration,
    stop: &AtomicBool,
) -> Result<Vec<Overlap>> {
    let budget = budget / u32::try_from(sizes_bytes.len()).unwrap_or(u32::MAX);
    let of_size = |&bytes: &usize| {
        let job = Job::threads(pes as usize).pinned();
        let job = waiting.map_or(job.clone(), |waiting| job.waiting(waiting));
        let samples = job.run(|pe| member(pe, bytes, budget, stop))?.into_vec().swap_remove(0);
        let over = |of: &dyn Fn(&Sample) -> f64| {
            Summary::of(&samples.iter().map(of).collect::<Vec<f64>>())
        };
        Ok(Overlap {
            bytes,
            pes,
            alone: over(&|sample| sample.alone_ns),
            late: over(&|sample| sample.late_ns),
            busy: over(&|sample| sample.busy_ns),
            of_longer: over(&|sample| sample.late_ns / ((LATE + 1.0) * sample.typical_ns)).median,
            of_sum: over(&|sample| sample.busy_ns / (2.0 * sample.typical_ns)).median,
        })
    };
    // Relaxed: the flag publishes no other data.
    sizes_bytes.iter().take_while(|_| !stop.load(Relaxed)).map(of_size).collect()
}

impl Overlap {
    /// Returns a figure for each kind.
    pub fn figures(&self) -> [Figure; 3] {
        let kinds = [("blocking", self.alone), ("late root", self.late), ("busy", self.busy)];
        kinds.map(|(kind, times)| {
            let figure = Figure {
                algorithm: Some(format!("broadcast, {kind}")),
                bytes: Some(self.bytes),
                ..Figure::of("overlap", self.pes, Mode::Latency)
            };
            figure.with(&times)
        })
    }
}

/// Computes for `ns`, and occasionally calls the library, which takes additional time.
fn compute(world: &Team, ns: f64) -> Result<()> {
    let mut left = Duration::from_secs_f64(ns / 1e9);
    while !left.is_zero() {
        let slice = left.min(Duration::from_secs_f64(SLICE_NS / 1e9));
        let begun = Instant::now();
        while begun.elapsed() < slice {
            spin_loop();
        }
        left -= slice;
        world.progress()?;
    }
    Ok(())
}

/// Returns the time of a call on `data` that all PEs begin together, on the slowest PE. The data is
/// in the caches where a blocking broadcast leaves it.
fn timed(
    world: &Team,
    data: &mut [f64],
    call: impl FnOnce(&mut [f64]) -> Result<()>,
) -> Result<f64> {
    world.in_place(data).broadcast(ROOT)?;
    world.barrier()?;
    let begun = Instant::now();
    call(data)?;
    world.all_reduce(begun.elapsed().as_secs_f64() * 1e9, Max)
}

/// Takes samples until the time is over.
fn member(pe: &Pe, bytes: usize, budget: Duration, stop: &AtomicBool) -> Result<Vec<Sample>> {
    let world = pe.world();
    let is_root = world.rank() == ROOT;
    let mut data = vec![1.0_f64; bytes / size_of::<f64>()];
    let begun = Instant::now();
    let (mut samples, mut alone) = (Vec::new(), Vec::new());
    loop {
        let alone_ns = timed(world, &mut data, |data| world.in_place(data).broadcast(ROOT))?;
        alone.push(alone_ns);
        let typical_ns = Summary::of(&alone[alone.len().saturating_sub(RECENT)..]).median;
        let late_ns = timed(world, &mut data, |data| {
            world.overlap(|scope| {
                if is_root {
                    compute(world, LATE * typical_ns)?;
                }
                let request = scope.start_in_place(data).broadcast(ROOT)?;
                if !is_root {
                    compute(world, (LATE + 1.0) * typical_ns)?;
                }
                request.wait().map(drop)
            })
        })?;
        let busy_ns = timed(world, &mut data, |data| {
            world.overlap(|scope| {
                let request = scope.start_in_place(data).broadcast(ROOT)?;
                compute(world, typical_ns)?;
                request.wait().map(drop)
            })
        })?;
        samples.push(Sample { alone_ns, typical_ns, late_ns, busy_ns });
        let goes_on = u8::from(begun.elapsed() < budget && !stop.load(Relaxed));
        if world.broadcast(goes_on, ROOT)? == 0 {
            return Ok(samples);
        }
    }
}
