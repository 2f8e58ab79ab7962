//! `consort bench sharing`: a job on cores that others use too, and the processor time of waits.

use anyhow::Result;
use consort::MOST_PES;
use consort_bench::{
    environment::Switches,
    {page::Page, workloads::sharing},
};
use consort_console::{measurement::Measurement, require};

use super::arguments::Bench;

/// Measures and prints. Returns what takes its time, whatever the budget.
pub(super) fn run(bench: &Bench, measurement: &Measurement) -> Result<String> {
    let stop = &*measurement.stop;
    let none = bench.is_plain() && bench.bytes.is_empty() && bench.waiting.is_none();
    require!(none, "sharing takes PEs and budget alone");
    let pes = bench.pes()?;
    require!((1..=MOST_PES).contains(&pes), "--pes {pes}: use 1 to {MOST_PES}");
    let results = sharing::measure(pes, bench.budget, stop)?;
    let mut page = Page::default();
    results.show(&mut page);
    bench.tell(measurement, &Switches::default(), &results.figures(), &page)?;
    Ok("each wait, and each job of some milliseconds, is timed once at least".to_owned())
}
