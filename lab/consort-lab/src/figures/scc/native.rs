//! The same broadcasts on this machine: one PE for each core, calls in a row.

use std::time::Instant;

use anyhow::Result;
use consort::{Job, async_broadcasts::AsyncVariant as Variant, tune::Candidate};

#[cfg(target_os = "linux")]
use super::native_interrupts::{self, Interrupts};
use super::{
    super::{
        experiment::{Experiment, Outcome},
        measure,
        quantity::Quantity,
    },
    machine::{LINE_BYTES, MACHINE, MEGABYTE_LINES, oc_bcast, scatter_allgather},
    row::Row,
};
use consort_bench::harness::Work;
#[cfg(target_os = "linux")]
use consort_bench::units::time;

/// Adds values on this machine to two rows. Measures two broadcasts of this many lines: OC-BCAST
/// with the root as the parent of all other PEs, and `other`. `of` computes a value from a time in
/// nanoseconds.
pub(super) fn add_native(
    experiment: &Experiment<'_>,
    rows: &mut [Row],
    lines: usize,
    other: Candidate,
    of: impl Fn(f64) -> f64,
) -> Result<()> {
    let (pes, bytes) = (experiment.cores.max(2), lines * LINE_BYTES);
    let query = measure::broadcast(pes, bytes);
    let work = [oc_bcast(u64::from(pes) - 1), other].map(|one| Work::of(&query, &one));
    let medians = experiment.medians(pes, &work, experiment.budget)?;
    rows.iter_mut().zip(medians).for_each(|(row, ns)| row.native(ns.map(&of)));
    Ok(())
}

/// Adds the throughputs of OC-BCAST and scatter-allgather of 1 MB on this machine to two rows, in
/// 10^6 B/s.
pub(super) fn add_native_mbps(experiment: &Experiment<'_>, rows: &mut [Row]) -> Result<()> {
    let mbps = |ns| (MEGABYTE_LINES * LINE_BYTES) as f64 * 1e3 / ns;
    add_native(experiment, rows, MEGABYTE_LINES, scatter_allgather(), mbps)
}

/// The number of messages of each source on this machine.
const MESSAGES: u32 = 400;

/// Returns the time of a message in asynchronous broadcasts on this machine, in nanoseconds. The
/// measurement lasts until all PEs have all messages.
pub(super) fn async_broadcast_ns(
    experiment: &Experiment<'_>,
    variant: Variant,
    sources: u32,
    bytes: usize,
) -> Result<f64> {
    let pes = experiment.cores.max(2);
    let data = vec![0; bytes];
    let results = Job::threads(pes as usize).pinned().without_wisdom().run(|pe| {
        let world = pe.world();
        let mut broadcasts = world.async_broadcasts_by(world.size() - 1, variant, |_, _| ())?;
        world.barrier()?;
        let began = Instant::now();
        for _ in (0..MESSAGES).filter(|_| world.rank().0 < sources) {
            broadcasts.broadcast(&data)?;
        }
        broadcasts.close()?;
        Ok(began.elapsed().as_secs_f64() * 1e9)
    })?;
    let longest_ns = results.into_iter().fold(0.0, f64::max);
    Ok(longest_ns / f64::from(MESSAGES * sources.min(pes)))
}

/// Adds the time of an interrupt of a thread here. The library does not use interrupts.
#[cfg(target_os = "linux")]
pub(super) fn add_interrupts(outcome: &mut Outcome) -> Result<()> {
    let Interrupts { signal_ns, membarrier_ns, poll_ns } = native_interrupts::measure()?;
    let ways = [
        ("a signal to a thread that computes", Some(signal_ns)),
        ("a memory barrier on all cores of a process", membarrier_ns),
        ("a line that a waiting thread polls", Some(poll_ns)),
    ];
    for (what, ns) in ways {
        let figure = Quantity::new(MACHINE, what, "us");
        outcome.quantities.push(figure.native(ns.map(|ns| ns / 1e3)));
    }
    let barrier = membarrier_ns.map_or("no such call".to_owned(), time);
    outcome.page.paragraph(format!(
        "Here nothing interrupts a PE: it polls in every call of the library in which it waits, \
         and not while it computes. A signal to a thread takes {} until its handler has run, and \
         a handler may call almost nothing. A memory barrier on all cores of the process takes \
         {barrier}, and a line that a waiting thread polls {}.",
        time(signal_ns),
        time(poll_ns),
    ));
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn add_interrupts(_: &mut Outcome) -> Result<()> {
    Ok(())
}
