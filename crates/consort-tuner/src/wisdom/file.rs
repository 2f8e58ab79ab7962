//! The path of wisdom, and loading and atomic saving.
//!
//! A reader sees the old or the new wisdom, and a crash leaves one of them (`files::replace`). If
//! two tuners save at the same time, the file of the last one remains.

use std::{
    error::Error,
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
};

use consort_fabric::{environment::variable, files};
use etcetera::BaseStrategy;

use super::{Identity, IdentityMismatch, Wisdom, format::FormatError};
use crate::Arrival;

/// The reason why wisdom could not be loaded or saved.
#[derive(Debug)]
pub enum WisdomError {
    /// There is no file at this path.
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The file exists but cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is truncated, or is not wisdom.
    NotWisdom {
        /// The file.
        path: PathBuf,
        /// The line of the error, from 1.
        line: usize,
        /// The error, and what was expected.
        message: String,
    },
    /// The file is wisdom in another format.
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The file's format.
        theirs: u64,
        /// The format that this version reads.
        ours: u64,
    },
    /// The file is the wisdom of another machine or arrival, or of algorithms that have changed.
    IdentityMismatch {
        /// The file.
        path: PathBuf,
        /// The difference.
        mismatch: IdentityMismatch,
    },
    /// The file cannot be written. An old one is unchanged.
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// There is no home directory, and therefore no configuration directory.
    NoHome,
}

impl fmt::Display for WisdomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { path } => {
                write!(f, "{} does not exist: `consort tune` makes it", path.display())
            }
            Self::Unreadable { path, .. } => write!(f, "cannot read {}", path.display()),
            Self::NotWisdom { path, line, message } => {
                write!(f, "{}:{line}: not wisdom: {message}", path.display())
            }
            Self::OtherFormat { path, theirs, ours } => write!(
                f,
                "{} is wisdom in format {theirs}, and this version reads format {ours}: run \
                 `consort tune` again, into another file to keep this one",
                path.display()
            ),
            Self::IdentityMismatch { path, mismatch } => {
                write!(f, "{}: {mismatch}", path.display())
            }
            Self::Unwritable { path, .. } => write!(f, "cannot write {}", path.display()),
            Self::NoHome => f.write_str(
                "no home directory to keep wisdom in: set CONSORT_WISDOM to a file's path",
            ),
        }
    }
}

impl Error for WisdomError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } | Self::Unwritable { source, .. } => Some(source),
            Self::NotFound { .. }
            | Self::NotWisdom { .. }
            | Self::OtherFormat { .. }
            | Self::IdentityMismatch { .. }
            | Self::NoHome => None,
        }
    }
}

impl Wisdom {
    /// Loads the wisdom at `path` for use under `identity`, with the entries whose algorithms have
    /// not changed.
    ///
    /// # Errors
    /// If there is no file, it cannot be read, it is not wisdom, or it does not fit `identity`.
    pub fn load(path: &Path, identity: &Identity) -> Result<Self, WisdomError> {
        let fitted = Self::load_unfitted(path)?.fitted(identity);
        fitted.map_err(|mismatch| WisdomError::IdentityMismatch { path: path.to_owned(), mismatch })
    }

    /// Loads the wisdom at `path` to add entries to it. Unlike [`Wisdom::load`], it keeps entries
    /// of algorithms that `identity` does not know, because another program may have registered
    /// them.
    ///
    /// # Errors
    /// As [`Wisdom::load`].
    pub fn load_to_extend(path: &Path, identity: &Identity) -> Result<Self, WisdomError> {
        let all = Self::load_unfitted(path)?;
        let revisions = identity.revisions.clone().and_unknown_of(&all.identity.revisions);
        let fitted = all.fitted(&Identity { revisions, ..identity.clone() });
        fitted.map_err(|mismatch| WisdomError::IdentityMismatch { path: path.to_owned(), mismatch })
    }

    /// Loads the wisdom at `path`, whatever its identity, to show or to copy it.
    ///
    /// # Errors
    /// If there is no file, it cannot be read, or it is not wisdom.
    pub fn load_unfitted(path: &Path) -> Result<Self, WisdomError> {
        let path_buf = || path.to_owned();
        let bytes = files::read(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => WisdomError::NotFound { path: path_buf() },
            _ => WisdomError::Unreadable { path: path_buf(), source },
        })?;
        Self::parse(&bytes).map_err(|flaw| match flaw {
            FormatError::Text { line, message } => {
                WisdomError::NotWisdom { path: path_buf(), line, message }
            }
            FormatError::Format { theirs, ours } => {
                WisdomError::OtherFormat { path: path_buf(), theirs, ours }
            }
        })
    }

    /// Saves to `path`, and creates its directory if necessary. At every moment the path holds the
    /// old or the new wisdom. A symbolic link is followed.
    ///
    /// # Errors
    /// If the file cannot be written. Then nothing has changed.
    pub fn save(&self, path: &Path) -> Result<(), WisdomError> {
        replace_file(path, &self.to_string())
            .map_err(|source| WisdomError::Unwritable { path: path.to_owned(), source })
    }
}

/// Returns the path of wisdom: the file that `CONSORT_WISDOM` names; otherwise, in the user's
/// configuration directory, `consort/wisdom.toml` or, for skewed arrival,
/// `consort/wisdom-skewed.toml`.
///
/// # Errors
/// [`WisdomError::NoHome`] if the variable is not set and there is no home directory.
pub fn default_path(arrival: Arrival) -> Result<PathBuf, WisdomError> {
    path_named(variable("CONSORT_WISDOM"), arrival)
}

/// Returns the path in the variable's value, or the default.
fn path_named(variable: Option<OsString>, arrival: Arrival) -> Result<PathBuf, WisdomError> {
    if let Some(path) = variable {
        return Ok(path.into());
    }
    let strategy = etcetera::choose_base_strategy().map_err(|_| WisdomError::NoHome)?;
    let name = match arrival {
        Arrival::Together => "wisdom.toml",
        Arrival::Skewed => "wisdom-skewed.toml",
    };
    Ok(strategy.config_dir().join("consort").join(name))
}

/// The mode bits that let other users write a file.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Atomically replaces `path` by a file with `text`, and creates its directory if necessary. Only
/// this user may write the new file.
///
/// # Errors
/// If the file cannot be written. Then nothing has changed.
pub fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => files::create_folders(parent)?,
        _ => {}
    }
    files::replace(path, text.as_bytes(), WRITABLE_BY_OTHERS)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn variable_names_the_file() {
        let named = path_named(Some("here/mine.toml".into()), Arrival::Skewed);
        assert_eq!(named.ok(), Some(PathBuf::from("here/mine.toml")));
        if let Ok(path) = path_named(None, Arrival::Together) {
            assert!(path.ends_with("consort/wisdom.toml"), "{}", path.display());
        }
    }

    #[test]
    fn a_failed_rename_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let occupied = directory.path().join("wisdom.toml");
        fs::create_dir(&occupied).unwrap();
        fs::write(occupied.join("inside"), "kept").unwrap();
        assert!(replace_file(&occupied, "new").is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(occupied.join("inside")).unwrap(), "kept");
    }
}
