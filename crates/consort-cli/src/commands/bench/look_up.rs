//! `consort bench look-up`: the time of a look-up of a choice in compiled wisdom, and its size.

use anyhow::Result;
use consort::MOST_PES;
use consort_bench::{
    environment::Switches,
    page::Page,
    units,
    workloads::look_up::{self, BLOCK, LookUps},
};
use consort_console::{measurement::Measurement, output, require};

use super::arguments::Bench;

/// Measures and prints. Returns what takes its time, whatever the budget.
pub(super) fn run(bench: &Bench, measurement: &Measurement) -> Result<String> {
    let stop = &*measurement.stop;
    let none = bench.is_plain() && bench.bytes.is_empty() && bench.waiting.is_none();
    require!(none, "look-up takes PEs and budget alone");
    let pes = bench.pes()?;
    require!((1..=MOST_PES).contains(&pes), "--pes {pes}: use 1 to {MOST_PES}");
    let look_ups = look_up::measure(pes, bench.budget, stop)?;
    bench.tell(measurement, &Switches::default(), &look_ups.figures(), &page(&look_ups))?;
    Ok("the table of choices takes its time to make".to_owned())
}

fn page(look_ups: &LookUps) -> Page {
    let mut rows = Vec::new();
    for (kind, way, times) in &look_ups.times {
        rows.push(vec![
            (*kind).to_owned(),
            (*way).to_owned(),
            times.count.to_string(),
            output::time(times.median),
            units::precision(times.precision()),
            output::time(times.p99),
        ]);
    }
    let mut page = Page::default();
    page.paragraph(format!(
        "a table for {} PEs, of {} choices, {} of this machine's wisdom and the others by the \
         model: {} entries in {} bytes, {:.1} an entry with the candidates that they name",
        look_ups.pes,
        look_ups.choices,
        look_ups.own,
        look_ups.entries,
        look_ups.bytes,
        look_ups.bytes as f64 / look_ups.entries as f64
    ));
    page.table(["queries", "asked", "blocks", "median", "± %", "p99"], rows, 2..6);
    page.lines(format!("p99: of blocks of {BLOCK} look-ups.\n"));
    page
}
