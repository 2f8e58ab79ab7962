//! `consort bench counting`: programs with counting puts, and with the operations that these
//! replace.

use std::process::ExitCode;

use anyhow::Result;
use consort::Waiting;
use consort_bench::{
    page::Page,
    workloads::counting::{Race, Workload, show},
};
use consort_console::{
    args::{self, MOST_PES},
    interrupt, require,
};

use super::presenter::{OutputOptions, usual_pes};

const EXAMPLES: &str = "\
Examples:
  consort bench counting counted-all-to-all --bytes 8,4k
  consort bench counting stencil                  a pipeline (Synch_p2p)";

/// Time counting puts, next to the operations that they replace
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
// The help fits a screen without it.
#[command(mut_arg("until_decided", |option| option.hide(true)))]
pub(super) struct CountingBench {
    /// The program: a ping-pong, an exchange, or a pipeline
    #[arg(value_name = "PROGRAM", value_parser = args::one_of(Workload::EVERY, Workload::name))]
    workload: Workload,
    /// Sizes of a block or a message, as in 8,4k
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

impl CountingBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let Self { workload, waiting, .. } = *self;
        let (name, is_ball) = (workload.name(), workload.is_ball());
        let pes = self.pes.unwrap_or_else(|| if is_ball { 2 } else { usual_pes() });
        require!(!is_ball || pes == 2, "--pes {pes}: {name} needs 2 PEs");
        require!(pes >= 2, "--pes {pes}: {name} needs 2 to {MOST_PES} PEs");
        let sizes_bytes = match &self.bytes[..] {
            [] => workload.sizes_bytes(),
            sizes_bytes => sizes_bytes,
        };
        self.output.run(pes, |presenter| {
            let (stop, budget) = (&*presenter.measurement.stop, presenter.budget);
            let race = Race { workload, pes, waiting, sizes_bytes, rounds: None, budget, stop };
            let times = race.run()?;
            interrupt::ensure_measured(!times.is_empty(), stop)?;
            let mut page = Page::default();
            show(&mut page, workload, &times);
            presenter.show(&race.figures(&times), &page)?;
            let methods = workload.methods().len();
            Ok(format!("each size needs at least a block of each of {methods} methods"))
        })
    }
}
