//! T4: asynchronous broadcasts, which only their source calls.

use anyhow::Result;
use consort_collectives::async_broadcast::Variant;
use consort_sim::analytic::scc::Scc;

use super::{
    super::{
        experiment::{Experiment, Outcome},
        measure,
    },
    interrupts,
    machine::{CALLS, CORES, FITTED, LINE_BYTES, RAW, latency_us, oc_bcast, simulation},
    native::{add_interrupts, async_broadcast_ns},
    row::{Row, outcome},
    sources::{SATURATED_MBPS, Sources, name, settings},
};
use crate::simulation::async_broadcasts;
use consort_bench::{harness::Work, units::counted};

/// Sizes of Table 3.1, in lines.
const TABLE_3_1_LINES: [usize; 4] = [1, 32, 64, 128];
/// The degrees with which sources broadcast at once, as printed and with fair turns.
const DEGREES: [u32; 3] = [2, 7, 47];
const FAIR_DEGREES: [u32; 5] = [2, 3, 4, 7, 47];

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

/// T4: asynchronous broadcasts (section 3.3.4, table 3.1, figures 3.3 and 3.4).
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
    let printed = Sources::run(Variant::Published, &DEGREES)?;
    let fair = Sources::run(Variant::Fair, &FAIR_DEGREES)?;
    rows.extend(printed.rows(experiment, &[47])?);
    rows.extend(fair.rows(experiment, &DEGREES)?);
    let (of_interrupts, interrupts) = interrupts::rows(experiment.source)?;
    rows.extend(of_interrupts);
    for sources in [&printed, &fair] {
        rows.extend(sources.trends(experiment.source));
    }
    let starved = printed.fitted(CORES, 47);
    let [one, five, all] = [1, 5, CORES].map(|sources| fair.fitted(sources, 47));
    let verdict = format!(
        "64 and 128 lines take {:.1} and {:.1} us synchronously, {:.1} and {:.1} asynchronously \
         (paper: 112.7, 198.6; 118, 196.7). At k=47 one source reaches {:.1} MB/s, 5 {:.1} \
         and 48 {:.1} with fair turns (fitted; paper: a rise, then {SATURATED_MBPS:.1}), the \
         least of the 48 {:.2} times what the most does. As printed, Algorithm 2 starves sources \
         of the 48 ({:.1} MB/s; the least {:.2}): own chunks wait for a queue that is never empty, \
         and an interrupt always comes before acknowledgements are seen",
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
    add_interrupts(&mut outcome, experiment.source)?;
    Ok(outcome)
}
