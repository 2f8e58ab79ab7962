//! `consort bench online`: the gain and the cost of refining choices while a program runs.

use std::process::ExitCode;

use anyhow::Result;
use consort::tune::Candidate;
use consort_bench::{
    harness::Figure,
    page::Page,
    workloads::online::{self, RefinedCall},
};
use consort_console::{interrupt, output};

use super::presenter::{SizeOptions, usual_pes};

/// Time programs whose choices are refined while they run
#[derive(clap::Args)]
pub(super) struct OnlineBench {
    #[command(flatten)]
    options: SizeOptions,
}

impl OnlineBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let options = &self.options;
        let pes = options.pes.unwrap_or_else(usual_pes);
        options.output.run(pes, |presenter| {
            let stop = &*presenter.measurement.stop;
            let budget = presenter.budget;
            let kinds = online::measure(pes, &options.bytes, options.waiting, budget, stop)?;
            interrupt::ensure_measured(!kinds.is_empty(), stop)?;
            let figures: Vec<Figure> = kinds.iter().flat_map(RefinedCall::figures).collect();
            presenter.show(&figures, &page(&kinds))?;
            Ok("each kind of call needs three launches of at least one call".to_owned())
        })
    }
}

fn page(kinds: &[RefinedCall]) -> Page {
    let header = ["call", "bytes", "bad choice", "refined", "after calls", "after", "cost"];
    let row = |kind: &RefinedCall| {
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
    for RefinedCall { collective, bytes, bad, found, .. } in kinds {
        let [bad, found] = [bad, found].map(Candidate::brief);
        page.paragraph(format!("{collective} of {bytes} B: {bad}, refined to {found}"));
    }
    page.lines(format!(
        "Trying may cost {} % of the time in calls. The cost is relative to the last choice, if it \
         is forced.\n",
        100.0 * online::SHARE
    ));
    page
}
