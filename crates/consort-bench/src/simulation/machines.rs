//! The machines that can be simulated, by name: those that come along, and the one at hand.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use consort_sim::machines::Machine;
use consort_tuner::{Arrival, default_path};

/// The name of the description of the machine at hand.
const HOST: &str = "host";

/// The machine of a name, of a description's path, or at hand.
///
/// # Errors
/// When there is none, or its description has a flaw.
pub fn find(name: &str) -> Result<Machine> {
    Ok(Machine::find(&place(name)?)?)
}

/// Where the description of the machine at hand is kept: next to wisdom.
///
/// # Errors
/// When there is no place for it.
pub fn host_path() -> Result<PathBuf> {
    Ok(default_path(Arrival::Together)?.with_file_name("host.toml"))
}

/// The path of the description of the machine at hand, if it is asked for; any
/// other name as it is.
///
/// # Errors
/// When the machine at hand has no description.
pub fn place(name: &str) -> Result<String> {
    if name != HOST {
        return Ok(name.to_owned());
    }
    let path = host_path()?;
    if !path.exists() {
        bail!("{} does not exist: `consort calibrate` writes it", path.display());
    }
    path.into_os_string().into_string().ok().context("the path of host.toml is not in UTF-8")
}
