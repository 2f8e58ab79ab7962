//! The wisdom file: where it is, how it is set aside, and what to do about one that is of no use.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use consort::Arrival;
use consort_tuner::{WisdomError, default_path};

/// The wisdom file that was named, or the one that a launch would find.
///
/// # Errors
/// When there is no place for it.
pub(crate) fn path(named: Option<&PathBuf>, arrival: Arrival) -> Result<PathBuf> {
    named.cloned().map_or_else(|| Ok(default_path(arrival)?), Ok)
}

/// Copies what is at `path` to the same name with `.old` behind it, and says where that is.
///
/// # Errors
/// When it cannot be copied.
pub(crate) fn set_aside(path: &Path) -> Result<Option<PathBuf>> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".old");
    let aside = PathBuf::from(aside);
    match fs::copy(path, &aside) {
        Ok(_) => Ok(Some(aside)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(error).with_context(|| format!("cannot keep the old wisdom as {}", aside.display()))
        }
    }
}

/// The error of a file that cannot be used, with what to do about it.
pub(crate) fn advised(error: WisdomError) -> anyhow::Error {
    match error {
        WisdomError::NotWisdom { .. } => {
            anyhow!("{error}; move it away and run `consort tune`, or name another file")
        }
        other => other.into(),
    }
}
