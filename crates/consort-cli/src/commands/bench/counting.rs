//! `consort bench counted-put` and similar: programs with counting puts, and with the operations
//! that they replace.

use anyhow::{Result, ensure};
use consort::MOST_PES;
use consort_bench::{
    environment::Switches,
    page::Page,
    workloads::counting::{Race, Workload, show},
};
use consort_console::{interrupt, measurement::Measurement, require};

use super::arguments::Bench;

/// Measures and prints. Returns what takes its time, whatever the budget.
pub(super) fn run(bench: &Bench, workload: Workload, measurement: &Measurement) -> Result<String> {
    let stop = &*measurement.stop;
    let name = workload.name();
    let others = bench.is_plain() && !bench.rewrite;
    require!(others, "{name} takes sizes, PEs, waiting, budget and class alone");
    let is_ball = workload.is_ball();
    let pes = if is_ball { bench.pes_or(2)? } else { bench.pes()? };
    require!(!is_ball || pes == 2, "--pes {pes}: {name} has two PEs");
    require!((2..=MOST_PES).contains(&pes), "--pes {pes}: {name} takes 2 to {MOST_PES} PEs");
    let sizes_bytes = if bench.bytes.is_empty() { workload.sizes_bytes() } else { &bench.bytes };
    for &bytes in sizes_bytes {
        let fits = workload.most_bytes().is_none_or(|most| bytes <= most);
        require!(fits, "--bytes {bytes}: a line has both balls of {name} up to 24 bytes");
    }
    let waiting = bench.waiting;
    let race =
        Race { workload, pes, waiting, sizes_bytes, rounds: None, budget: bench.budget, stop };
    let mut times = race.run()?;
    ensure!(!times.is_empty(), "nothing was measured: {}", interrupt::why_nothing(stop));
    times.retain(|times| bench.class.shows(times.class));
    ensure!(!times.is_empty(), "the cores were in another class throughout: try --class both");
    let mut page = Page::default();
    show(&mut page, workload, &times);
    bench.tell(measurement, &Switches::default(), &race.figures(&times), &page)?;
    Ok(format!("each size has a block of each of {} methods at least", workload.methods().len()))
}
