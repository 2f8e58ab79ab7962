//! `consort bench region`: parallel regions and barriers of threads, in this library and others.

use std::process::ExitCode;

use anyhow::Result;
use consort_bench::{
    harness::Figure,
    page::Page,
    peers::openmp::OpenMp,
    workloads::region::{Race, Results, show},
};
use consort_console::{args, interrupt};

use super::presenter::{OutputOptions, usual_pes};

/// Time parallel regions, next to rayon, std, hurdles and OpenMP
#[derive(clap::Args)]
pub(super) struct RegionBench {
    /// PEs, as in 2,8 [default: one a usable core]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = args::pes)]
    pes: Vec<u32>,
    #[command(flatten)]
    output: OutputOptions,
}

impl RegionBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let several = if self.pes.is_empty() { &[usual_pes()] } else { &self.pes[..] };
        let most = several.iter().copied().max().unwrap_or(u32::MAX);
        self.output.run(most, |presenter| {
            let stop = &*presenter.measurement.stop;
            let openmp = OpenMp::compile_any(stop);
            let budget = presenter.budget / u32::try_from(several.len()).unwrap_or(u32::MAX);
            let all = several.iter().take_while(|_| !interrupt::is_set(stop));
            let all = all.map(|&pes| Race { pes, budget, openmp: &openmp, stop }.run());
            let all = all.collect::<Result<Vec<Results>>>()?;
            let is_measured = all.iter().any(|results| !results.classes.is_empty());
            interrupt::ensure_measured(is_measured || !interrupt::is_set(stop), stop)?;
            let figures: Vec<Figure> = all.iter().flat_map(Results::figures).collect();
            let mut page = Page::default();
            show(&mut page, &all);
            presenter.show(&figures, &page)?;
            Ok("each library needs at least a block".to_owned())
        })
    }
}
