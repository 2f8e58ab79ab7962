//! `consort bench openshmem`: routines of OpenSHMEM, next to those of another library.

use std::{env, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::builder::PossibleValuesParser;
use consort_bench::{page::Page, peers::openshmem};

use super::{peers::NO_PEER, presenter::OutputOptions};

/// The name of the other library among the peers.
const OSHCC: &str = "oshcc";
/// The number of processes.
const PES: u32 = 2;

/// Time routines of OpenSHMEM, next to another library's
#[derive(clap::Args)]
pub(super) struct OpenShmemBench {
    /// oshcc (default): its library, or none
    #[arg(long, value_name = "NAME", default_value = OSHCC, hide_default_value = true,
        hide_possible_values = true, value_parser = PossibleValuesParser::new([OSHCC, NO_PEER]))]
    peers: String,
    #[command(flatten)]
    output: OutputOptions,
}

impl OpenShmemBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        self.output.run(PES, |presenter| {
            let consort = env::current_exe().context("cannot find the file of this command")?;
            let (peer, stop) = (self.peers == OSHCC, &presenter.measurement.stop);
            let results = openshmem::measure(&consort, peer, presenter.budget, stop)?;
            let mut page = Page::default();
            results.show(&mut page);
            presenter.show(&results.figures(), &page)?;
            Ok("both libraries compile two programs, and each is launched at least once".to_owned())
        })
    }
}
