//! Ending in order when the process is interrupted.

use std::{
    error::Error as StdError,
    io,
    process::{self, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use anyhow::{Context, Error, Result};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::{
    output::{self, progress::Progress},
    usage::Usage,
};

/// The exit status of a process that an interrupt has ended.
const INTERRUPTED: u8 = 130;
/// What is said if there is no result.
const NOTHING: &str = "interrupted: there was nothing to show until then";

/// A flag that is set by an interrupt (Ctrl-C) or a request to terminate; a second one ends the
/// process.
///
/// # Errors
/// When the system refuses a signal handler.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order the first signal finds the flag unset, and only sets it.
        let (status, stop) = (i32::from(INTERRUPTED), Arc::clone(&flag));
        signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, stop))
            .context("cannot handle interrupts")?;
    }
    Ok(flag)
}

/// Whether the flag is set.
pub(crate) fn is_set(stop: &AtomicBool) -> bool {
    // Relaxed: the flag publishes no other data.
    stop.load(Relaxed)
}

/// The exit status of a command that shows what it has measured, whether or not it was stopped
/// before its end, which it says.
pub(crate) fn ending(stop: &AtomicBool) -> ExitCode {
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
pub(crate) fn ending_with(error: Error, stop: &AtomicBool) -> Result<ExitCode> {
    let is_other =
        |cause: &(dyn StdError + 'static)| cause.is::<io::Error>() || cause.is::<Usage>();
    if !is_set(stop) || error.chain().any(is_other) {
        return Err(error);
    }
    output::complain(NOTHING);
    Ok(ExitCode::from(INTERRUPTED))
}

/// Ends the process if the flag is set, where half a result is none.
pub(crate) fn end_if_set(stop: &AtomicBool, progress: &Progress) {
    if is_set(stop) {
        progress.clear();
        output::complain(NOTHING);
        process::exit(INTERRUPTED.into());
    }
}

/// Why nothing was measured, where no job failed.
pub(crate) fn why_nothing(stop: &AtomicBool) -> &'static str {
    if is_set(stop) {
        "it was interrupted before"
    } else {
        "the machine changed in the midst of every block; try again when it is idle"
    }
}
