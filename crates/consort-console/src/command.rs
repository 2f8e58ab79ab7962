//! Runs a command: parses its arguments, prints its error, and chooses its exit status.

use std::{ffi::OsString, process::ExitCode};

use anyhow::Result;
use clap::Parser;

use crate::{args, output, signals, usage};

/// Runs a command on these arguments, and returns its exit status. Both closures have room on the
/// stack, even if the process's stack is small.
#[must_use]
pub fn run<C: Parser>(
    arguments: impl FnOnce() -> Vec<OsString> + Send,
    run: impl FnOnce(C) -> Result<ExitCode> + Send,
) -> ExitCode {
    let command = || {
        let command = args::parsed(arguments());
        output::warnings::show();
        signals::survive_size_limit();
        run(command).unwrap_or_else(|error| {
            output::print_error_line(&format!("error: {error:#}"));
            usage::status(&error)
        })
    };
    consort_launch::with_room(command).unwrap_or_else(|error| {
        output::print_error_line(&format!("error: {error}"));
        ExitCode::FAILURE
    })
}
