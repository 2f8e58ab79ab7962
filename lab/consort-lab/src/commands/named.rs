//! Finds the machine that an argument names.

use std::path::Path;

use anyhow::Result;
use consort_console::usage;
use consort_sim::machines::Machine;

use crate::simulation::machines;

/// Returns a machine by its name, or by the path of a description that ends in `.toml`.
///
/// # Errors
/// When no machine has this name, or a description cannot be read or has an error.
pub(super) fn machine(name: &str) -> Result<Machine> {
    let is_file = name == "host" || Path::new(name).extension().is_some_and(|it| it == "toml");
    machines::find(name).map_err(|error| match is_file {
        true => error,
        false => usage::invalid_argument(format!("{error:#}")),
    })
}
