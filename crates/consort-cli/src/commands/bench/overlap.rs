//! `consort bench overlap`: a nonblocking broadcast with computation of the same length during it.

use std::process::ExitCode;

use anyhow::Result;
use consort_bench::{
    harness::Figure,
    page::Page,
    workloads::overlap::{self, Overlap},
};
use consort_console::{interrupt, output, require};

use super::presenter::{SizeOptions, usual_pes};

/// Time computation during a nonblocking broadcast
#[derive(clap::Args)]
pub(super) struct OverlapBench {
    #[command(flatten)]
    options: SizeOptions,
}

impl OverlapBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let options = &self.options;
        let pes = options.pes.unwrap_or_else(usual_pes);
        require!(pes > 1, "--pes 1: a broadcast needs at least one receiver");
        let sizes = options.sizes_or(&overlap::SIZES_BYTES);
        options.output.run(pes, |presenter| {
            let stop = &*presenter.measurement.stop;
            let sizes = overlap::measure(pes, sizes, options.waiting, presenter.budget, stop)?;
            interrupt::ensure_measured(!sizes.is_empty(), stop)?;
            let figures: Vec<Figure> = sizes.iter().flat_map(Overlap::figures).collect();
            presenter.show(&figures, &page(&sizes))?;
            let why = "each size needs at least three broadcasts, one with ten times as much \
                       computation";
            Ok(why.to_owned())
        })
    }
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
