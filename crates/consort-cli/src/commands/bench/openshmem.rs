//! `consort bench openshmem`: routines of OpenSHMEM, beside those of another library.

use consort_console::{measurement::Measurement, refuse, require};
use std::env;

use anyhow::{Context as _, Result};
use consort_bench::{environment::Switches, page::Page, peers::openshmem};

use super::arguments::Bench;

/// Measures and prints. Returns what takes its time, whatever the budget.
pub(super) fn run(bench: &Bench, measurement: &Measurement) -> Result<String> {
    let peer = match &bench.peers.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => true,
        ["none"] => false,
        _ => refuse!("--peers: openshmem has none but that of oshcc: use none, or omit it"),
    };
    let none = bench.is_plain_beside_peers() && bench.bytes.is_empty() && bench.waiting.is_none();
    require!(none && bench.pes.is_empty(), "openshmem takes peers and budget alone");
    let consort = env::current_exe().context("this command is nowhere")?;
    let results = openshmem::measure(&consort, peer, bench.budget, &measurement.stop)?;
    let mut page = Page::default();
    results.show(&mut page);
    bench.tell(measurement, &Switches::default(), &results.figures(), &page)?;
    Ok("both libraries compile two programs, and each is launched once at least".to_owned())
}
