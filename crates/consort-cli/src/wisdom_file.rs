//! The wisdom file: its path, the backup of the old file, and remedies for an unusable file.

use consort_console::require;
use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use consort::{
    launch::{Fabric, MachineShape},
    tune::Arrival,
};
pub(crate) use consort_bench::wisdom::advised;
use consort_fabric::files;
use consort_tuner::default_path;

/// Returns the path of the named wisdom file, or of the one that a launch of such PEs uses.
///
/// # Errors
/// When there is no home directory, or the placement of PEs on machines is unknown.
pub(crate) fn path(named: Option<&PathBuf>, arrival: Arrival, fabric: Fabric) -> Result<PathBuf> {
    require!(
        !matches!(fabric, Fabric::Mixed(MachineShape { processes: None, .. })),
        "--fabric {fabric}: say how many processes a machine has, as in mixed:2x1 for 2 with 1 PE \
         each; `consort topo --fabric {fabric}` shows how many"
    );
    let default = || Ok(fabric.path_of_wisdom(default_path(arrival)?));
    named.cloned().map_or_else(default, Ok)
}

/// Copies the file at `path` to the same name with `.old` appended, and returns the path of the
/// copy.
///
/// # Errors
/// When it cannot be copied.
pub(crate) fn set_aside(path: &Path) -> Result<Option<PathBuf>> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".old");
    let aside = PathBuf::from(aside);
    let old = match files::read(path) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    files::replace(&aside, &old, 0)
        .with_context(|| format!("cannot keep the old wisdom as {}", aside.display()))?;
    Ok(Some(aside))
}
