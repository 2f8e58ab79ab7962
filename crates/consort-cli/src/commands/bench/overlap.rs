//! `consort bench overlap`: a nonblocking broadcast with computation of the same length during it.

use anyhow::{Result, ensure};
use consort_bench::{
    environment::Switches,
    harness::Figure,
    workloads::overlap::{self, Overlap},
};

use super::arguments::Bench;
use crate::{interrupt, measurement::Measurement, output};

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
    measurement.tell(&Switches::default(), bench.json.as_ref(), &figures, || text(&sizes))?;
    Ok("each size has three broadcasts at least, one with ten times as much computation".to_owned())
}

fn text(sizes: &[Overlap]) -> String {
    let mut table =
        output::table(["bytes", "broadcast", "late root", "of longer", "busy", "of sum"]);
    for size in sizes {
        table.add_row([
            size.bytes.to_string(),
            output::time(size.alone.median),
            output::time(size.late.median),
            output::ratio(size.of_longer),
            output::time(size.busy.median),
            output::ratio(size.of_sum),
        ]);
    }
    output::finish(table, &[0, 1, 2, 3, 4, 5])
}
