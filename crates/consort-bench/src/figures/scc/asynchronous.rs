//! T4: asynchronous broadcasts, which only their source calls.

use anyhow::Result;
use consort_collectives::async_broadcast::Variant;
use consort_sim::analytic::scc::Scc;

use super::{
    super::{
        experiment::{Experiment, Outcome},
        measure,
        quantity::Source,
    },
    machine::{CALLS, CORES, FITTED, LINE_BYTES, MACHINE, RAW, latency_us, oc_bcast, simulation},
    native::async_broadcast_ns,
    row::{Row, outcome},
};
use crate::{
    harness::Work,
    simulation::async_broadcasts::{self, Aggregate, Settings},
    units::counted,
};
#[cfg(target_os = "linux")]
use crate::{
    units::time,
    workloads::interrupts::{self, Interrupts},
};

/// Sizes of Table 3.1, in lines.
const TABLE_3_1_LINES: [usize; 4] = [1, 32, 64, 128];
/// 68 % of a core's bandwidth in copying from a message buffer to its memory, in 10^6 B/s.
pub const SATURATED_MBPS: f64 = 0.68 * 55.0;
/// How long sources broadcast continuously, in nanoseconds.
const ENDLESS_NS: f64 = 1e7;
/// Bytes of their messages.
const ENDLESS_BYTES: usize = 128 * LINE_BYTES;

/// The settings of the broadcasts.
fn settings(variant: Variant, k: u32) -> Settings {
    Settings { k, chunk_bytes: 96 * LINE_BYTES, variant }
}

/// What rows call a variant.
const fn name(variant: Variant) -> &'static str {
    match variant {
        Variant::Published => "",
        Variant::Fair => ", fair",
    }
}

/// The row of a size with calls of all PEs.
fn synchronous(experiment: &Experiment<'_>, lines: usize) -> Result<Row> {
    let (bytes, pes) = (lines * LINE_BYTES, experiment.cores.max(2));
    let at = |effects| latency_us(effects, oc_bcast(47), lines);
    let what = format!("{}, synchronous", counted(lines, "line"));
    let row = Row::new(experiment.source, what, "us", at(RAW)?);
    let model_us = Scc::table_4_1().latency_ns(lines as u64, 47) / 1e3;
    let work = [Work::of(&measure::broadcast(pes, bytes), &oc_bcast(u64::from(pes) - 1))];
    let here = experiment.medians(pes, &work, experiment.budget / 4)?;
    let mut row = row.model(model_us).fitted(at(FITTED)?);
    row.native(here[0].map(|ns| ns / 1e3));
    Ok(row)
}

/// The row of a size with a call of the source alone.
fn asynchronous(experiment: &Experiment<'_>, variant: Variant, lines: usize) -> Result<Row> {
    let (bytes, calls) = (lines * LINE_BYTES, u32::try_from(CALLS)?);
    let settings = settings(variant, 47);
    let at = |effects| -> Result<f64> {
        Ok(async_broadcasts::latency_ns(&simulation(effects)?, settings, bytes, calls)? / 1e3)
    };
    let what = format!("{}, asynchronous{}", counted(lines, "line"), name(variant));
    let row = Row::new(experiment.source, what, "us", at(RAW)?);
    let mut row = row.fitted(at(FITTED)?);
    row.native(Some(async_broadcast_ns(experiment, variant, 1, bytes)? / 1e3));
    Ok(row)
}

/// The row of the throughput of several sources at once, and that with the fitted parameters.
fn endless(
    experiment: &Experiment<'_>,
    variant: Variant,
    sources: u32,
    k: u32,
) -> Result<(Row, Aggregate)> {
    let settings = settings(variant, k);
    let at = |effects| {
        let simulation = simulation(effects)?;
        async_broadcasts::aggregate(&simulation, settings, sources, ENDLESS_BYTES, ENDLESS_NS)
    };
    let what = format!("{}, k={k}{}", counted(sources, "source"), name(variant));
    let (raw, fitted) = (at(RAW)?, at(FITTED)?);
    let mut row = Row::new(experiment.source, what, "MB/s", raw.mbps).fitted(fitted.mbps);
    if k == 47 {
        // A PE receives the messages of the other sources only.
        let pes = f64::from(experiment.cores.max(2));
        let message_ns = async_broadcast_ns(experiment, variant, sources, ENDLESS_BYTES)?;
        row.native(Some(ENDLESS_BYTES as f64 * 1e3 / message_ns * (pes - 1.0) / pes));
    }
    Ok((row, fitted))
}

/// T4: asynchronous broadcasts (section 3.3.4, table 3.1 and figure 3.4).
///
/// # Errors
/// When a job or a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut rows = Vec::new();
    for lines in TABLE_3_1_LINES {
        rows.push(synchronous(experiment, lines)?);
    }
    for variant in [Variant::Published, Variant::Fair] {
        for lines in TABLE_3_1_LINES {
            rows.push(asynchronous(experiment, variant, lines)?);
        }
    }
    let mut reached = Vec::new();
    for (variant, all_k) in [(Variant::Published, &[47][..]), (Variant::Fair, &[2, 7, 47])] {
        for &k in all_k {
            for sources in [1, 5, CORES] {
                let (row, fitted) = endless(experiment, variant, sources, k)?;
                rows.push(row);
                reached.push(fitted);
            }
        }
    }
    let starved = reached[2];
    let [one, five, all] = [9, 10, 11].map(|index| reached[index].mbps);
    let verdict = format!(
        "64 and 128 lines take {:.1} and {:.1} us synchronously, {:.1} and {:.1} asynchronously \
         (paper: 112.7, 198.6; 118, 196.7). At k=47 one source reaches {one:.1} MB/s, 5 {five:.1} \
         and 48 {all:.1} with fair turns (fitted; paper: a rise, then {SATURATED_MBPS:.1}), the \
         least of the 48 {:.2} times what the most does. As printed, Algorithm 2 starves sources \
         of the 48 ({:.1} MB/s; the least {:.2}): own chunks wait for a queue that is never empty, \
         and an interrupt always comes before acknowledgements are seen",
        rows[2].raw,
        rows[3].raw,
        rows[6].raw,
        rows[7].raw,
        reached[11].fairness,
        starved.mbps,
        starved.fairness,
    );
    let mut outcome = outcome(&rows, verdict)?;
    add_interrupts(&mut outcome, experiment.source)?;
    Ok(outcome)
}

/// Adds what an interrupt of a thread takes here, of which the library makes none.
#[cfg(target_os = "linux")]
fn add_interrupts(outcome: &mut Outcome, source: Source) -> Result<()> {
    let Interrupts { signal_ns, membarrier_ns, poll_ns } = interrupts::measure()?;
    let ways = [
        ("a signal to a thread that computes", Some(signal_ns)),
        ("a memory barrier on all cores of a process", membarrier_ns),
        ("a line that a waiting thread polls", Some(poll_ns)),
    ];
    for (what, ns) in ways {
        outcome.quantities.push(source.quantity(MACHINE, what, "us").native(ns.map(|ns| ns / 1e3)));
    }
    let barrier = membarrier_ns.map_or("no such call".to_owned(), time);
    outcome.page.paragraph(format!(
        "Here nothing interrupts a PE: it polls in every call of the library in which it waits, and \
         not while it computes. A signal to a thread takes {} until its handler has run, which may \
         call next to nothing; a memory barrier on all cores of the process {barrier}; a line that \
         a waiting thread polls {}.",
        time(signal_ns),
        time(poll_ns),
    ));
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn add_interrupts(_: &mut Outcome, _: Source) -> Result<()> {
    Ok(())
}
