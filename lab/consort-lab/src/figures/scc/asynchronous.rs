//! T4: asynchronous broadcasts, which only their source calls.

use anyhow::Result;
use consort_collectives::async_broadcast::Variant;
use consort_sim::analytic::scc::Scc;

use super::{
    super::{
        experiment::{Experiment, Outcome},
        figure::Figure,
        measure,
    },
    interrupts,
    machine::{CALLS, CORES, FITTED, LINE_BYTES, MACHINE, RAW, latency_us, oc_bcast, simulation},
    native::{add_interrupts, async_broadcast_ns},
    row::{Row, outcome},
    sources::{SATURATED_MBPS, Sources, name, settings},
};
use crate::simulation::async_broadcasts;
use consort_bench::harness::Work;

figures! { pub FIGURES of "T4", "section 3.3.4, table 3.1": "us":
    SYNC_1("1 line, synchronous", MACHINE == 44.1)
    SYNC_32("32 lines, synchronous", MACHINE == 75.8)
    SYNC_64("64 lines, synchronous", MACHINE == 112.7)
    SYNC_128("128 lines, synchronous", MACHINE == 198.6)
    ASYNC_1("1 line, asynchronous", MACHINE == 40.2)
    ASYNC_32("32 lines, asynchronous", MACHINE == 75.5)
    ASYNC_64("64 lines, asynchronous", MACHINE == 118.0)
    ASYNC_128("128 lines, asynchronous", MACHINE == 196.7)
}

/// A figure of table 3.1, with the lines of its messages.
type Entry = (usize, &'static Figure);

const SYNC: [Entry; 4] = [(1, &SYNC_1), (32, &SYNC_32), (64, &SYNC_64), (128, &SYNC_128)];
const ASYNC: [Entry; 4] = [(1, &ASYNC_1), (32, &ASYNC_32), (64, &ASYNC_64), (128, &ASYNC_128)];
/// The degrees with which sources broadcast at once, as printed and with fair turns.
const DEGREES: [u32; 3] = [2, 7, 47];
const FAIR_DEGREES: [u32; 5] = [2, 3, 4, 7, 47];

/// Returns the row of a size when all PEs make the call.
fn synchronous(experiment: &Experiment<'_>, (lines, figure): Entry) -> Result<Row> {
    let (bytes, pes) = (lines * LINE_BYTES, experiment.cores.max(2));
    let at = |effects| latency_us(effects, oc_bcast(47), lines);
    let row = Row::of(figure, at(RAW)?);
    let model_us = Scc::table_4_1().latency_ns(lines as u64, 47) / 1e3;
    let work = [Work::of(&measure::broadcast(pes, bytes), &oc_bcast(u64::from(pes) - 1))];
    let here = experiment.medians(pes, &work, experiment.budget / 4)?;
    let mut row = row.model(model_us).fitted(at(FITTED)?);
    row.native(here[0].map(|ns| ns / 1e3));
    Ok(row)
}

/// Returns the row of a size when only the source makes the call.
fn asynchronous(
    experiment: &Experiment<'_>,
    variant: Variant,
    (lines, figure): Entry,
) -> Result<Row> {
    let (bytes, calls) = (lines * LINE_BYTES, u32::try_from(CALLS)?);
    let settings = settings(variant, 47);
    let at = |effects| -> Result<f64> {
        Ok(async_broadcasts::latency_ns(&simulation(effects)?, settings, bytes, calls)? / 1e3)
    };
    let quantity = match variant {
        Variant::Published => figure.on(MACHINE),
        Variant::Fair => figure.on(MACHINE).named(name(variant)).unpublished(),
    };
    let mut row = Row::new(quantity, at(RAW)?).fitted(at(FITTED)?);
    row.native(Some(async_broadcast_ns(experiment, variant, 1, bytes)? / 1e3));
    Ok(row)
}

/// T4: asynchronous broadcasts (section 3.3.4, table 3.1, figures 3.3 and 3.4).
///
/// # Errors
/// When a job or a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut rows = Vec::new();
    for entry in SYNC {
        rows.push(synchronous(experiment, entry)?);
    }
    for variant in [Variant::Published, Variant::Fair] {
        for entry in ASYNC {
            rows.push(asynchronous(experiment, variant, entry)?);
        }
    }
    let printed = Sources::run(Variant::Published, &DEGREES)?;
    let fair = Sources::run(Variant::Fair, &FAIR_DEGREES)?;
    rows.extend(printed.rows(experiment, &[47])?);
    rows.extend(fair.rows(experiment, &DEGREES)?);
    let (of_interrupts, interrupts) = interrupts::rows()?;
    rows.extend(of_interrupts);
    for sources in [&printed, &fair] {
        rows.extend(sources.trends());
    }
    let starved = printed.fitted(CORES, 47);
    let [one, five, all] = [1, 5, CORES].map(|sources| fair.fitted(sources, 47));
    let verdict = format!(
        "64 and 128 lines take {:.1} and {:.1} us synchronously, {:.1} and {:.1} asynchronously \
         (paper: 112.7, 198.6; 118, 196.7). At k=47, one source reaches {:.1} MB/s, 5 sources \
         {:.1} and 48 sources {:.1} with fair turns (fitted; paper: a rise, then \
         {SATURATED_MBPS:.1}). The slowest of the 48 reaches {:.2} of the fastest. As printed, \
         Algorithm 2 starves some of the 48 ({:.1} MB/s; the slowest reaches {:.2}): a source's \
         own chunks wait for a queue that is never empty, and interrupts always precede \
         acknowledgements",
        rows[2].raw,
        rows[3].raw,
        rows[6].raw,
        rows[7].raw,
        one.mbps,
        five.mbps,
        all.mbps,
        all.fairness,
        starved.mbps,
        starved.fairness,
    );
    let mut outcome = outcome(&rows, verdict)?;
    outcome.page.curves(interrupts);
    outcome.page.curves(printed.curves());
    outcome.page.curves(fair.curves());
    add_interrupts(&mut outcome)?;
    Ok(outcome)
}
