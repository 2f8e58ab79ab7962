//! `consort profile`: shows where a program spends its time in calls, and how much time could be
//! saved.
//!
//! The program's PEs write their profiles to a folder that `CONSORT_PROFILE` names. When the
//! program has ended, in any way, `joined` joins them, `tuning` compares wisdom with the algorithms
//! that served the calls, and `text` and `json` show the result.

mod joined;
mod json;
mod text;
mod tuning;

use std::{
    ffi::OsString,
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{Command, ExitCode, ExitStatus},
};

use anyhow::{Context, Result, ensure};
use consort::launch::Fabric;

use consort_console::{
    args,
    output::{quoted, write_or_print},
    program::run,
};
use joined::JobProfile;
use tuning::{AdvisedJob, Advisor};

/// The environment variable that names the folder of the profiles.
const PROFILE: &str = "CONSORT_PROFILE";

const EXAMPLES: &str = "\
Examples:
  consort profile ./solver --steps 100
  consort profile --json=solver.json ./solver
  consort profile consort run -n 4 ./program

The program runs as always, and the profile follows its output. Calls take
some 100 ns longer. The exit status is the program's, or 128 and the number of
the signal that ended it. With CONSORT_TRACE=trace.json a program writes a
trace of its calls for ui.perfetto.dev, with or without this command.";

/// Show where a program's time goes, and what tuning would gain
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Profile {
    /// The wisdom to compare with [default: CONSORT_WISDOM, or the user's]
    #[arg(long, value_name = "FILE")]
    wisdom: Option<PathBuf>,
    /// Write a JSON object for each job to FILE, or print it
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        default_missing_value = "-", value_parser = args::writable())]
    json: Option<PathBuf>,
    /// The program, and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    program: Vec<OsString>,
}

impl Profile {
    /// Runs the program, and shows the profile of its jobs.
    ///
    /// # Errors
    /// When the program cannot be started, made no calls, or the profile cannot be shown.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let folder = tempfile::tempdir().context("cannot create a folder for the profile")?;
        let (program, words) = self.program.split_first().context("a program is required")?;
        let mut command = Command::new(program);
        command.args(words).env(PROFILE, folder.path());
        // If an interrupt or a request to terminate ends the program, the profile is shown.
        let status =
            run(&mut command).with_context(|| format!("cannot run {}", quoted(program)))?;
        let jobs = joined::read(folder.path())?;
        ensure!(
            !jobs.is_empty(),
            "{} made no calls of Consort, or was built with another version: docs/profiling.md says \
             how to estimate the gain for other programs",
            quoted(program)
        );
        let jobs: Vec<AdvisedJob> =
            jobs.into_iter().map(|job| self.advised(job)).collect::<Result<_>>()?;
        let objects: Vec<_> = jobs.iter().map(json::JobRecord::of).collect();
        write_or_print(self.json.as_ref(), &objects, || text::of_jobs(&jobs))?;
        Ok(exit_code(status))
    }

    fn advised(&self, job: JobProfile) -> Result<AdvisedJob> {
        let fabric = job.pes.first().map_or("", |pe| pe.fabric.as_str());
        let fabric: Fabric = fabric.parse()?;
        Ok(Advisor::new(self.wisdom.as_ref(), fabric)?.advised(job))
    }
}

/// Returns the status of the program, or 128 and the number of the signal that ended it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
