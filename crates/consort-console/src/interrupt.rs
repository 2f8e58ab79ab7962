//! Ending in order when the process is interrupted.

use std::{
    error::Error as StdError,
    io,
    process::{self, ExitCode},
    sync::atomic::AtomicBool,
};

use anyhow::{Error, Result};

use crate::{
    output::{self, progress::Progress},
    signals::INTERRUPTED,
    usage::Usage,
};

pub use crate::signals::{is_set, stop_flag};

/// What is said if there is no result.
const NOTHING: &str = "interrupted: there was nothing to show until then";

/// The exit status of a command that shows what it has measured, whether or not it was stopped
/// before its end, which it says.
pub fn ending(stop: &AtomicBool) -> ExitCode {
    if !is_set(stop) {
        return ExitCode::SUCCESS;
    }
    output::complain("interrupted: this is what there was until then");
    ExitCode::from(INTERRUPTED)
}

/// The exit status of a command that has failed because it was stopped before it had anything.
///
/// # Errors
/// The same, when that is not why it failed.
pub fn ending_with(error: Error, stop: &AtomicBool) -> Result<ExitCode> {
    let is_other =
        |cause: &(dyn StdError + 'static)| cause.is::<io::Error>() || cause.is::<Usage>();
    if !is_set(stop) || error.chain().any(is_other) {
        return Err(error);
    }
    output::complain(NOTHING);
    Ok(ExitCode::from(INTERRUPTED))
}

/// Ends the process if the flag is set, where half a result is none.
pub fn end_if_set(stop: &AtomicBool, progress: &Progress) {
    if is_set(stop) {
        progress.clear();
        output::complain(NOTHING);
        process::exit(INTERRUPTED.into());
    }
}

/// Why nothing was measured, where no job failed.
pub fn why_nothing(stop: &AtomicBool) -> &'static str {
    if is_set(stop) {
        "it was interrupted before"
    } else {
        "the machine changed in the midst of every block; try again when it is idle"
    }
}
