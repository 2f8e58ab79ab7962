//! `consort bench online`: the gain and the cost of refining choices while a program runs.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use consort::Waiting;
use consort_bench::{
    harness::Figure,
    page::Page,
    workloads::online::{self, Refining},
};
use consort_console::{args, interrupt, output};

use super::presenter::{OutputOptions, usual_pes};

/// Time programs whose choices are refined while they run
#[derive(clap::Args)]
pub(super) struct OnlineBench {
    /// Sizes of a block, such as 8,8k
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

impl OnlineBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let pes = self.pes.unwrap_or_else(usual_pes);
        self.output.run(pes, |presenter| {
            let stop = &*presenter.measurement.stop;
            let budget = self.output.budget;
            let kinds = online::measure(pes, &self.bytes, self.waiting, budget, stop)?;
            ensure!(!kinds.is_empty(), "nothing was measured: {}", interrupt::why_nothing(stop));
            let figures: Vec<Figure> = kinds.iter().flat_map(Refining::figures).collect();
            presenter.show(&figures, &page(&kinds))?;
            Ok("each kind of call has three launches, of one call at least".to_owned())
        })
    }
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
