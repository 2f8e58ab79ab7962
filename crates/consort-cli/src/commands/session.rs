//! `consort session`: one PE's part in a measurement, in a process that `bench` or `tune` starts.

use std::path::PathBuf;

use anyhow::Result;
use consort_bench::harness::take_part;

use crate::output;

/// Take part in a measurement, as a process that it has started
#[derive(clap::Args, Debug)]
pub(crate) struct Session {
    /// What is to be measured
    file: PathBuf,
}

impl Session {
    /// Measures; PE 0 prints the outcome.
    ///
    /// # Errors
    /// When the file has no session, or the job fails.
    pub(crate) fn run(&self) -> Result<()> {
        take_part(&self.file)?.map_or(Ok(()), |outcome| output::print_as_it_is(&(outcome + "\n")))
    }
}
