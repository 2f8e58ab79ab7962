//! `consort bench overlap`: a nonblocking broadcast with computation of the same length during it.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use consort::Waiting;
use consort_bench::{
    harness::Figure,
    page::Page,
    workloads::overlap::{self, Overlap},
};
use consort_console::{args, interrupt, output, require};

use super::presenter::{OutputOptions, usual_pes};

/// Time computation during a nonblocking broadcast
#[derive(clap::Args)]
pub(super) struct OverlapBench {
    /// Sizes of the broadcast, such as 64k,1M
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = args::block)]
    bytes: Vec<usize>,
    /// PEs [default: one for each usable core]
    #[arg(long, value_name = "N", value_parser = args::pes)]
    pes: Option<u32>,
    /// spin, spin-yield or spin-yield-park (default)
    #[arg(long, value_name = "POLICY")]
    waiting: Option<Waiting>,
    #[command(flatten)]
    output: OutputOptions,
}

impl OverlapBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let pes = self.pes.unwrap_or_else(usual_pes);
        require!(pes > 1, "--pes 1: a broadcast needs at least one receiver");
        let sizes = if self.bytes.is_empty() { &overlap::SIZES_BYTES[..] } else { &self.bytes };
        self.output.run(pes, |presenter| {
            let stop = &*presenter.measurement.stop;
            let sizes = overlap::measure(pes, sizes, self.waiting, self.output.budget, stop)?;
            ensure!(!sizes.is_empty(), "nothing was measured: {}", interrupt::why_nothing(stop));
            let figures: Vec<Figure> = sizes.iter().flat_map(Overlap::figures).collect();
            presenter.show(&figures, &page(&sizes))?;
            let why = "each size has three broadcasts at least, one with ten times as much \
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
