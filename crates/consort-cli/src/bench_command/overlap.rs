//! `consort bench overlap`: a nonblocking broadcast, and as much computing meanwhile.
//!
//! - *late root*: the root works before it starts the broadcast; the others compute as long as a
//!   blocking broadcast would make them wait, and then wait for the rest. Against the longer of
//!   the two.
//! - *busy*: all start, compute as long as the broadcast takes, and wait. Against the sum.
//!
//! Copying is a processor's work: what overlaps is waiting with computing, not two kinds of work
//! on one core. Computing offers the library a turn every 20 us, as a program would now and then.
//!
//! Source of the question: nonblocking collectives in Nishtala, Zheng, Hargrove and Yelick 2011,
//! section 3.

use std::{
    hint::spin_loop,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use consort::{Algorithms, Max, Pe, Pes, Rank, Team};
use consort_fabric::statistics::Summary;

use super::{Bench, figure::Figure};
use crate::output;

const SIZES_BYTES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];
/// A late root comes so many broadcasts late.
const LATE: f64 = 10.0;
/// How long is computed between two turns of the library.
const SLICE_NS: f64 = 20_000.0;

const ROOT: Rank = Rank(0);
/// A blocking broadcast is taken to be as long as the last so many were in the middle: cores move
/// apart and together while this runs.
const RECENT: usize = 15;

/// What is timed, in nanoseconds on the PE that takes longest.
struct Sample {
    /// A blocking broadcast.
    alone_ns: f64,
    /// What such a one took of late, and so what is computed.
    typical_ns: f64,
    /// One whose root is late, with computing.
    late_ns: f64,
    /// One while all compute.
    busy_ns: f64,
}

/// Measures and prints.
pub(super) fn run(bench: &Bench) -> Result<()> {
    let others = bench.sync.is_empty() && bench.algorithm.is_empty() && bench.mpi.is_empty();
    ensure!(others && !bench.all_algorithms, "overlap takes PEs, sizes, waiting and budget alone");
    let pes = bench.pes.unwrap_or(Algorithms::here().cores().max(2));
    ensure!(pes > 1, "--pes 1: a broadcast needs somebody to send to");
    let sizes = if bench.bytes.is_empty() { &SIZES_BYTES[..] } else { &bench.bytes };
    let budget = bench.budget / u32::try_from(sizes.len()).unwrap_or(u32::MAX);
    let mut figures = Vec::new();
    let mut table =
        output::table(["bytes", "broadcast", "late root", "of longer", "busy", "of sum"]);
    for &bytes in sizes {
        let job = Pes::threads(pes);
        let job = bench.waiting.map_or(job.clone(), |waiting| job.waiting(waiting));
        let samples = job.run(|pe| member(pe, bytes, budget))?.swap_remove(0).1;
        let over = |of: &dyn Fn(&Sample) -> f64| {
            Summary::of(&samples.iter().map(of).collect::<Vec<f64>>())
        };
        let alone = over(&|sample| sample.alone_ns);
        let (late, busy) = (over(&|sample| sample.late_ns), over(&|sample| sample.busy_ns));
        let of_longer = over(&|sample| sample.late_ns / ((LATE + 1.0) * sample.typical_ns));
        let of_sum = over(&|sample| sample.busy_ns / (2.0 * sample.typical_ns));
        table.add_row([
            bytes.to_string(),
            output::time(alone.median),
            output::time(late.median),
            output::ratio(of_longer.median),
            output::time(busy.median),
            output::ratio(of_sum.median),
        ]);
        let ways = [("blocking", alone), ("late root", late), ("busy", busy)];
        figures.extend(ways.map(|(way, times)| {
            let figure = Figure {
                bench: "overlap",
                fabric: "threads".into(),
                pes,
                team: "world",
                mode: "latency",
                arrival: "together",
                algorithm: Some(format!("broadcast, {way}")),
                bytes: Some(bytes),
                ..Figure::default()
            };
            figure.with(&times)
        }));
    }
    match &bench.json {
        Some(path) => output::write_json_lines(path, &figures),
        None => output::print(&output::finish(table, &[0, 1, 2, 3, 4, 5])),
    }
}

/// Computes for so long, and lets the library go on now and then, which takes time besides.
fn compute(world: Team<'_>, ns: f64) -> consort::Result<()> {
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

/// The time of a call on `data` that all begin together, the longest of all PEs'. The data is in
/// the caches where a blocking broadcast leaves it.
fn timed(
    world: Team<'_>,
    data: &mut [f64],
    call: impl FnOnce(&mut [f64]) -> consort::Result<()>,
) -> consort::Result<f64> {
    world.broadcast_slice(data, ROOT)?;
    world.barrier()?;
    let begun = Instant::now();
    call(data)?;
    world.all_reduce(begun.elapsed().as_secs_f64() * 1e9, Max)
}

/// Samples until the time is over.
fn member(pe: &Pe, bytes: usize, budget: Duration) -> consort::Result<Vec<Sample>> {
    let world = pe.world();
    let is_root = world.rank() == ROOT;
    let mut data = vec![1.0_f64; bytes / size_of::<f64>()];
    let begun = Instant::now();
    let (mut samples, mut alone) = (Vec::new(), Vec::new());
    loop {
        let alone_ns = timed(world, &mut data, |data| world.broadcast_slice(data, ROOT))?;
        alone.push(alone_ns);
        let typical_ns = Summary::of(&alone[alone.len().saturating_sub(RECENT)..]).median;
        let late_ns = timed(world, &mut data, |data| {
            world.overlap(|scope| {
                if is_root {
                    compute(world, LATE * typical_ns)?;
                }
                let pending = scope.start_broadcast(data, ROOT)?;
                if !is_root {
                    compute(world, (LATE + 1.0) * typical_ns)?;
                }
                pending.wait().map(drop)
            })
        })?;
        let busy_ns = timed(world, &mut data, |data| {
            world.overlap(|scope| {
                let pending = scope.start_broadcast(data, ROOT)?;
                compute(world, typical_ns)?;
                pending.wait().map(drop)
            })
        })?;
        samples.push(Sample { alone_ns, typical_ns, late_ns, busy_ns });
        let goes_on = u8::from(begun.elapsed() < budget);
        if world.broadcast(goes_on, ROOT)? == 0 {
            return Ok(samples);
        }
    }
}
