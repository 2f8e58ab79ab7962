//! Orderly ends of an interrupted process.

use std::{
    error::Error as StdError,
    io,
    process::{self, ExitCode},
    sync::atomic::AtomicBool,
};

use anyhow::{Error, Result, ensure};

use crate::{
    output::{self, progress::Progress},
    signals::INTERRUPTED,
    usage::Usage,
};

pub use crate::signals::{is_set, stop_flag};

/// The message if there is no result.
const NOTHING: &str = "interrupted: there are no results yet";

/// Returns the exit status of a command that shows its measurements. Reports whether it was
/// interrupted.
pub fn ending(stop: &AtomicBool) -> ExitCode {
    if !is_set(stop) {
        return ExitCode::SUCCESS;
    }
    output::print_error_line("interrupted: these are the results so far");
    ExitCode::from(INTERRUPTED)
}

/// Returns the exit status of a command that failed because it was interrupted without a result.
///
/// # Errors
/// The error itself, when it has another reason.
pub fn ending_with(error: Error, stop: &AtomicBool) -> Result<ExitCode> {
    let is_other =
        |cause: &(dyn StdError + 'static)| cause.is::<io::Error>() || cause.is::<Usage>();
    if !is_set(stop) || error.chain().any(is_other) {
        return Err(error);
    }
    output::print_error_line(NOTHING);
    Ok(ExitCode::from(INTERRUPTED))
}

/// Ends the process if the flag is set, for commands without partial results.
pub fn end_if_set(stop: &AtomicBool, progress: &Progress) {
    if is_set(stop) {
        progress.clear();
        output::print_error_line(NOTHING);
        process::exit(INTERRUPTED.into());
    }
}

/// Checks that a benchmark has measured something.
///
/// # Errors
/// When it has not; the message says why.
pub fn ensure_measured(is_measured: bool, stop: &AtomicBool) -> Result<()> {
    ensure!(is_measured, "nothing was measured: {}", why_nothing(stop));
    Ok(())
}

/// Returns why nothing was measured, if no job failed.
pub fn why_nothing(stop: &AtomicBool) -> &'static str {
    if is_set(stop) {
        "it was interrupted first"
    } else {
        "the machine changed during every block; try again when it is idle"
    }
}
