//! `consort bench look-up`: the time of a look-up of a choice in compiled wisdom, and its size.

use std::process::ExitCode;

use anyhow::Result;
use consort_bench::{
    page::Page,
    units,
    workloads::look_up::{self, BLOCK, LookUps},
};
use consort_console::{args, output};

use super::presenter::{OutputOptions, usual_pes};

/// Time the look-up of a choice in wisdom, and count its memory
#[derive(clap::Args)]
pub(super) struct LookUpBench {
    /// PEs [default: one for each usable core]
    #[arg(long, value_name = "N", value_parser = args::pes)]
    pes: Option<u32>,
    #[command(flatten)]
    output: OutputOptions,
}

impl LookUpBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let pes = self.pes.unwrap_or_else(usual_pes);
        self.output.run(pes, |presenter| {
            let stop = &*presenter.measurement.stop;
            let look_ups = look_up::measure(pes, presenter.budget, stop)?;
            presenter.show(&look_ups.figures(), &page(&look_ups))?;
            Ok("it takes time to build the table of choices".to_owned())
        })
    }
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
        "a table for {} PEs, with {} choices: {} by this machine's wisdom, the others by the model; \
         {} entries in {} bytes, {:.1} bytes per entry, including the names of candidates",
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
