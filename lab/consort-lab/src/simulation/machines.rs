//! The machines that can be simulated, by name: the built-in ones, and this machine.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use consort_sim::machines::Machine;
use consort_tuner::{Arrival, default_path};

/// The name of the description of this machine.
const HOST: &str = "host";

/// Returns the machine of this name: a built-in one, the one at a description's path, or this
/// machine.
///
/// # Errors
/// When the machine does not exist, or its description has an error.
pub fn find(name: &str) -> Result<Machine> {
    Ok(Machine::find(&place(name)?)?)
}

/// Returns the path of the description of this machine, which is next to the wisdom.
///
/// # Errors
/// When there is no configuration directory.
pub fn host_path() -> Result<PathBuf> {
    Ok(default_path(Arrival::Together)?.with_file_name("host.toml"))
}

/// Returns the path of the description of this machine if `name` is `host`. Returns any other name
/// unchanged.
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
