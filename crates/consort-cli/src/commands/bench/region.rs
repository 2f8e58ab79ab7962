//! `consort bench region`: parallel regions and barriers of threads, by this library and by others.

use anyhow::{Result, ensure};
use consort::MOST_PES;
use consort_bench::{
    environment::Switches,
    harness::Figure,
    page::Page,
    peers::openmp::OpenMp,
    workloads::region::{Race, Results, show},
};
use consort_console::{interrupt, measurement::Measurement, require};

use super::arguments::Bench;

/// Measures and prints. Returns what takes its time, whatever the budget.
pub(super) fn run(bench: &Bench, measurement: &Measurement) -> Result<String> {
    let stop = &*measurement.stop;
    let none = bench.is_plain() && bench.bytes.is_empty() && bench.waiting.is_none();
    require!(none, "region takes PEs, budget and class alone");
    let several = if bench.pes.is_empty() { &[bench.pes()?][..] } else { &bench.pes };
    for pes in several {
        require!((1..=MOST_PES).contains(pes), "--pes {pes}: use 1 to {MOST_PES}");
    }
    let openmp = OpenMp::compile_any(stop);
    let budget = bench.budget / u32::try_from(several.len()).unwrap_or(u32::MAX);
    let all = several.iter().take_while(|_| !interrupt::is_set(stop)).map(|&pes| {
        let mut results = Race { pes, budget, openmp: &openmp, stop }.run()?;
        results.classes.retain(|one| bench.class.shows(one.class));
        Ok(results)
    });
    let all = all.collect::<Result<Vec<Results>>>()?;
    let is_measured = all.iter().any(|results| !results.classes.is_empty());
    ensure!(
        is_measured || !interrupt::is_set(stop),
        "nothing was measured: {}",
        interrupt::why_nothing(stop)
    );
    let figures: Vec<Figure> = all.iter().flat_map(Results::figures).collect();
    let mut page = Page::default();
    show(&mut page, &all);
    bench.tell(measurement, &Switches::default(), &figures, &page)?;
    Ok("each library has a block at least".to_owned())
}
