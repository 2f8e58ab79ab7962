//! Writes the output files that a user names.
//!
//! A regular file is replaced atomically: if the write fails, the old file is still there. A pipe,
//! a device, or standard output by its name is written in place.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind},
    path::Path,
};

use anyhow::{Context, Result};
use consort_fabric::files::{Target, replace, try_to_replace};

use super::stream::{print_as_it_is, write_to};

/// Writes a text to a file or, as `-`, to standard output.
///
/// # Errors
/// When it cannot be written.
pub fn save(path: &Path, text: &str) -> Result<()> {
    if path.as_os_str() == "-" {
        return print_as_it_is(text);
    }
    write(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let place = match Target::of(path)? {
        Target::File(place) => place,
        Target::Stream(path) => return write_to(&path, bytes),
    };
    let is_old = ensure_writable(&place)?;
    match replace(&place, bytes, 0) {
        Err(error) if is_old && is_of_folder(&error) => fs::write(&place, bytes),
        replaced => replaced,
    }
}

/// Returns whether the file exists. If it does, it must be writable.
fn ensure_writable(place: &Path) -> io::Result<bool> {
    match OpenOptions::new().append(true).open(place) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns whether a folder prevents replacing its files: it is another user's, or the file is
/// mounted. Such a file can only be overwritten.
fn is_of_folder(error: &io::Error) -> bool {
    use ErrorKind::{PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | ResourceBusy)
}

/// Tries whether a file can be written, and leaves it unchanged: a file that did not exist still
/// does not. A pipe or a device is not opened, because its reader would notice.
///
/// # Errors
/// When it cannot be written.
pub fn try_to_write(path: &Path) -> Result<()> {
    let tried = Target::of(path).and_then(|target| match target {
        Target::File(place) => match ensure_writable(&place)? {
            true => match try_to_replace(&place) {
                Err(error) if !is_of_folder(&error) => Err(error),
                _ => Ok(()),
            },
            false => try_to_replace(&place),
        },
        Target::Stream(_) => Ok(()),
    });
    tried.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn trying_to_write_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let [known, new, link] = ["known", "new", "link"].map(|name| folder.path().join(name));
        fs::write(&known, "figures").unwrap();
        symlink("new", &link).unwrap();
        for path in [&known, &new, &link] {
            try_to_write(path).unwrap();
        }
        assert_eq!(fs::read_to_string(&known).unwrap(), "figures");
        assert!(!new.exists() && fs::read_dir(folder.path()).unwrap().count() == 2);
        try_to_write(Path::new("/dev/null")).unwrap();
        for (path, why) in [
            (folder.path().to_owned(), "it is a directory: name a regular file"),
            (known.join("below"), "Not a directory"),
            (new.join("below"), "No such file"),
        ] {
            let error = format!("{:#}", try_to_write(&path).unwrap_err());
            assert!(error.contains("cannot write") && error.contains(why), "{error}");
        }
    }
}
