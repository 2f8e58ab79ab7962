//! `consort bench sharing`: a job on cores that others use too, and the processor time of waits.

use std::process::ExitCode;

use anyhow::Result;
use consort_bench::{page::Page, workloads::sharing};
use consort_console::args;

use super::presenter::{OutputOptions, usual_pes};

/// Time a job next to another, and the processor time of waits
#[derive(clap::Args)]
pub(super) struct SharingBench {
    /// PEs [default: one for each usable core]
    #[arg(long, value_name = "N", value_parser = args::pes)]
    pes: Option<u32>,
    #[command(flatten)]
    output: OutputOptions,
}

impl SharingBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let pes = self.pes.unwrap_or_else(usual_pes);
        self.output.run(pes, |presenter| {
            let results = sharing::measure(pes, presenter.budget, &presenter.measurement.stop)?;
            let mut page = Page::default();
            results.show(&mut page);
            presenter.show(&results.figures(), &page)?;
            Ok("each wait, and each job of some milliseconds, is timed at least once".to_owned())
        })
    }
}
