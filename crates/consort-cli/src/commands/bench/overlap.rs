//! `consort bench overlap`: a nonblocking broadcast with computation of the same length during it.

use anyhow::{Result, ensure};
use consort_bench::{
    environment::Switches,
    harness::Figure,
    page::Page,
    workloads::overlap::{self, Overlap},
};
use consort_console::{interrupt, measurement::Measurement, output, require};

use super::arguments::Bench;

/// Measures and prints. Returns what takes its time, whatever the budget.
pub(super) fn run(bench: &Bench, measurement: &Measurement) -> Result<String> {
    let stop = &*measurement.stop;
    require!(bench.is_plain(), "overlap takes PEs, sizes, waiting and budget alone");
    let pes = bench.pes()?;
    require!(pes > 1, "--pes 1: a broadcast needs somebody to send to");
    let sizes = if bench.bytes.is_empty() { &overlap::SIZES_BYTES[..] } else { &bench.bytes };
    let sizes = overlap::measure(pes, sizes, bench.waiting, bench.budget, stop)?;
    ensure!(!sizes.is_empty(), "nothing was measured: {}", interrupt::why_nothing(stop));
    let figures: Vec<Figure> = sizes.iter().flat_map(Overlap::figures).collect();
    bench.tell(measurement, &Switches::default(), &figures, &page(&sizes))?;
    Ok("each size has three broadcasts at least, one with ten times as much computation".to_owned())
}

fn page(sizes: &[Overlap]) -> Page {
    let row = |size: &Overlap| {
        vec![
            size.bytes.to_string(),
            output::time(size.alone.median),
            output::time(size.late.median),
            output::ratio(size.of_longer),
            output::time(size.busy.median),
            output::ratio(size.of_sum),
        ]
    };
    let header = ["bytes", "broadcast", "late root", "of longer", "busy", "of sum"];
    let mut page = Page::default();
    page.table(header, sizes.iter().map(row).collect(), 0..6);
    page
}
