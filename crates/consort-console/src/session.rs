//! The hidden command `session`: one PE's part in a measurement, in a process that the same command
//! has started.

use std::{env, ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context as _, Result};
use consort_bench::harness::take_part;
use consort_launch::{Binding, Launch};
use consort_machine::topology::Topology;

use crate::{args, output};

/// How long the other processes continue when one has failed.
const GRACE: Duration = Duration::from_secs(1);

/// Take part in a measurement, as a process that it has started
#[derive(clap::Args, Debug)]
pub struct Session {
    /// Start this many processes that take part
    #[arg(long, value_name = "N", value_parser = args::pes)]
    start: Option<u32>,
    /// The file with the task
    file: PathBuf,
}

impl Session {
    /// Measures; PE 0 prints the outcome.
    ///
    /// # Errors
    /// When the file has no session, or the job fails.
    pub fn run(&self) -> Result<ExitCode> {
        if let Some(pes) = self.start {
            return self.start(pes);
        }
        if let Some(outcome) = take_part(&self.file)? {
            output::print_as_it_is(&(outcome + "\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Starts processes of this program, each on its own core if there are enough.
    fn start(&self, pes: u32) -> Result<ExitCode> {
        let program = env::current_exe().context("cannot find the path of this program")?;
        let topology = Topology::discover();
        let launch = Launch {
            pes,
            processors: topology.processors(),
            binding: if pes as usize <= topology.processors() {
                Binding::Core
            } else {
                Binding::Placed
            },
            variables: Vec::new(),
            tags: false,
            timeout: None,
            grace: GRACE,
            program: program.into(),
            arguments: vec![OsString::from("session"), self.file.clone().into()],
        };
        Ok(ExitCode::from(consort_launch::run(&launch)?))
    }
}
