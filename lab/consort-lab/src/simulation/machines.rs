//! The machines that can be simulated, by name: the shipped ones, and this machine.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use consort_sim::machines::Machine;
use consort_tuner::{Arrival, default_path};

/// The name of the description of this machine.
const HOST: &str = "host";

/// The machine of this name: a shipped one, that of a description's path, or this machine.
///
/// # Errors
/// When there is none, or its description has an error.
pub fn find(name: &str) -> Result<Machine> {
    Ok(Machine::find(&place(name)?)?)
}

/// The path of the description of this machine: beside wisdom.
///
/// # Errors
/// When there is no configuration directory.
pub fn host_path() -> Result<PathBuf> {
    Ok(default_path(Arrival::Together)?.with_file_name("host.toml"))
}

/// The path of the description of this machine if `name` is `host`; any other name as it is.
///
/// # Errors
/// When this machine has no description.
pub fn place(name: &str) -> Result<String> {
    if name != HOST {
        return Ok(name.to_owned());
    }
    let path = host_path()?;
    let is_there =
        path.try_exists().with_context(|| format!("cannot look up {}", path.display()))?;
    if !is_there {
        bail!("{} does not exist: `consort-lab calibrate` writes it", path.display());
    }
    path.into_os_string().into_string().ok().context("the path of host.toml is not in UTF-8")
}
