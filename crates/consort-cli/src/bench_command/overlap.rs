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

/// What is timed, in nanoseconds on the PE that takes longest: a blocking broadcast; one whose root
/// is late, with computing; one while all compute.
type Sample = [f64; 3];

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
        let alone = over(&|sample| sample[0]);
        let longer_ns = (LATE + 1.0) * alone.median;
        let (late, busy) = (over(&|sample| sample[1]), over(&|sample| sample[2]));
        table.add_row([
            bytes.to_string(),
            output::time(alone.median),
            output::time(late.median),
            output::ratio(late.median / longer_ns),
            output::time(busy.median),
            output::ratio(busy.median / (2.0 * alone.median)),
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

/// The times of a call that all begin together, the longest of all PEs'.
fn timed(world: Team<'_>, call: impl FnOnce() -> consort::Result<()>) -> consort::Result<f64> {
    world.barrier()?;
    let begun = Instant::now();
    call()?;
    world.all_reduce(begun.elapsed().as_secs_f64() * 1e9, Max)
}

/// Samples until the time is over.
fn member(pe: &Pe, bytes: usize, budget: Duration) -> consort::Result<Vec<Sample>> {
    let (world, root) = (pe.world(), Rank(0));
    let is_root = world.rank() == root;
    let mut data = vec![1.0_f64; bytes / size_of::<f64>()];
    let begun = Instant::now();
    let (mut samples, mut alone) = (Vec::new(), Vec::new());
    loop {
        let blocking_ns = timed(world, || world.broadcast_slice(&mut data, root))?;
        alone.push(blocking_ns);
        let typical_ns = Summary::of(&alone).median;
        let late_ns = timed(world, || {
            world.overlap(|scope| {
                if is_root {
                    compute(world, LATE * typical_ns)?;
                }
                let pending = scope.start_broadcast(&mut data, root)?;
                if !is_root {
                    compute(world, (LATE + 1.0) * typical_ns)?;
                }
                pending.wait().map(drop)
            })
        })?;
        let busy_ns = timed(world, || {
            world.overlap(|scope| {
                let pending = scope.start_broadcast(&mut data, root)?;
                compute(world, typical_ns)?;
                pending.wait().map(drop)
            })
        })?;
        samples.push([blocking_ns, late_ns, busy_ns]);
        let goes_on = u8::from(begun.elapsed() < budget);
        if world.broadcast(goes_on, root)? == 0 {
            return Ok(samples);
        }
    }
}
