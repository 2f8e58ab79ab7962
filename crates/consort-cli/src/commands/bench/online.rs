//! `consort bench online`: the gain and the cost of refining choices while a program runs.

use anyhow::{Result, ensure};
use consort_bench::{
    environment::Switches,
    harness::Figure,
    page::Page,
    workloads::online::{self, Refining},
};
use consort_console::{interrupt, measurement::Measurement, output, require};

use super::arguments::Bench;

/// Measures and prints. Returns what takes its time, whatever the budget.
pub(super) fn run(bench: &Bench, measurement: &Measurement) -> Result<String> {
    let stop = &*measurement.stop;
    require!(bench.is_plain(), "online takes PEs, sizes, waiting and budget alone");
    let pes = bench.pes()?;
    let kinds = online::measure(pes, &bench.bytes, bench.waiting, bench.budget, stop)?;
    ensure!(!kinds.is_empty(), "nothing was measured: {}", interrupt::why_nothing(stop));
    let figures: Vec<Figure> = kinds.iter().flat_map(Refining::figures).collect();
    bench.tell(measurement, &Switches::default(), &figures, &page(&kinds))?;
    Ok("each kind of call has three launches, of one call at least".to_owned())
}

fn page(kinds: &[Refining]) -> Page {
    let header = ["call", "bytes", "bad choice", "refined", "after calls", "after", "cost"];
    let row = |kind: &Refining| {
        vec![
            kind.collective.name().to_owned(),
            kind.bytes.to_string(),
            output::time(kind.kept.calls.median),
            output::time(kind.refined.calls.median),
            kind.refined.after_calls.to_string(),
            output::time(kind.refined.after.as_secs_f64() * 1e9),
            format!("{:+.1} %", 100.0 * kind.cost()),
        ]
    };
    let mut page = Page::default();
    page.table(header, kinds.iter().map(row).collect(), [1, 2, 3, 4, 5, 6]);
    for Refining { collective, bytes, bad, found, .. } in kinds {
        let [bad, found] = [bad, found].map(output::brief);
        page.paragraph(format!("{collective} of {bytes} B: {bad}, refined to {found}"));
    }
    page.lines(format!(
        "Trying may cost {} % of the time in calls. The cost is against the last choice, forced.\n",
        100.0 * online::SHARE
    ));
    page
}
