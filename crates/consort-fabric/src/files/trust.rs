//! Whether a user other than this one and root could have written a file.
//!
//! The path is walked from the root:
//!
//! - Each entry, and each folder of an entry, must belong to this user or to root.
//! - No one else may write to a folder, unless it is sticky (as `/tmp` is): then only owners can
//!   replace their entries.
//! - A symbolic link is an entry. Its target is walked in its place.
//! - No one else may write to the file itself.
//!
//! An entry is looked up only in a folder that has passed, so other users cannot change the result
//! afterwards: the resolved path opens what was checked. Access control lists need no separate
//! check, because a list that lets others write shows in the group bits.

use std::{
    fmt, io,
    path::{self, Path, PathBuf},
};

#[cfg(unix)]
use consort_machine::permissions::effective_user;

/// Why a file is not trusted.
#[derive(Debug)]
pub enum Untrusted {
    /// The file or a folder above it belongs to another user.
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// The user id.
        owner: u32,
    },
    /// The file or a folder above it may be written by others.
    Writable {
        /// The file or folder.
        path: PathBuf,
    },
    /// The file or a folder above it cannot be looked up.
    Unknown {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner { path, owner } => {
                write!(f, "{} belongs to user {owner}, not to this user or root", path.display())
            }
            Self::Writable { path } => {
                write!(f, "{} may be written by other users: `chmod go-w` it", path.display())
            }
            Self::Unknown { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for Untrusted {}

impl Untrusted {
    /// Returns whether the file does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Unknown { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Resolves the path of a file or a folder if only this user and root could have written it. The
/// result has no symbolic links.
///
/// # Errors
/// When another user could have, or the file does not exist.
pub fn resolve_trusted(path: &Path) -> Result<PathBuf, Untrusted> {
    let unknown = |error| Untrusted::Unknown { path: path.to_owned(), error };
    walk(&path::absolute(path).map_err(unknown)?)
}

/// Opens a folder that this process has just created for itself, even if others can change the
/// folders above it. No one else can change what is reached through the descriptor.
///
/// # Errors
/// When it cannot be opened, is a symbolic link, belongs to another user, or others may enter it.
#[cfg(unix)]
pub fn open_private_folder(path: &Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};

    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let folder = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = folder.metadata()?;
    let is_own = about.uid() == effective_user();
    if is_own && about.mode() & 0o077 == 0 {
        return Ok(folder);
    }
    let why = format!("{} has been replaced by another user", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Resolves a path without checks, because this system does not report who owns a file.
#[cfg(not(unix))]
fn walk(path: &Path) -> Result<PathBuf, Untrusted> {
    std::fs::canonicalize(path).map_err(|error| Untrusted::Unknown { path: path.to_owned(), error })
}

#[cfg(unix)]
fn walk(path: &Path) -> Result<PathBuf, Untrusted> {
    use std::{ffi::OsString, fs, path::Component};

    /// The number of symbolic links that Linux follows.
    const MOST_LINKS: usize = 40;

    let names = |path: &Path| -> Vec<OsString> {
        let names = path.components().filter_map(|part| match part {
            Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
        names.rev().collect()
    };
    let unknown = |path: &Path, error| Untrusted::Unknown { path: path.to_owned(), error };
    let look_up = |path: &Path| fs::symlink_metadata(path).map_err(|error| unknown(path, error));
    let root = Path::new("/");
    // The remaining names, the next one last.
    let mut rest = names(path);
    let (mut place, mut about) = (root.to_owned(), look_up(root)?);
    let mut links = 0;
    ensure_owned(root, &about)?;
    while let Some(name) = rest.pop() {
        if name == ".." {
            place.pop();
            about = look_up(&place)?;
            continue;
        }
        ensure_unwritable(&place, &about, true)?;
        let entry = place.join(name);
        let of_entry = look_up(&entry)?;
        ensure_owned(&entry, &of_entry)?;
        if !of_entry.is_symlink() {
            (place, about) = (entry, of_entry);
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(unknown(path, io::Error::other("too many symbolic links")));
        }
        let target = fs::read_link(&entry).map_err(|error| unknown(&entry, error))?;
        if target.is_absolute() {
            (place, about) = (root.to_owned(), look_up(root)?);
        }
        rest.extend(names(&target));
    }
    ensure_unwritable(&place, &about, about.is_dir())?;
    Ok(place)
}

/// Fails if the entry belongs to another user.
#[cfg(unix)]
fn ensure_owned(path: &Path, about: &std::fs::Metadata) -> Result<(), Untrusted> {
    use std::os::unix::fs::MetadataExt as _;

    let owner = about.uid();
    if owner == 0 || owner == effective_user() {
        return Ok(());
    }
    Err(Untrusted::Owner { path: path.to_owned(), owner })
}

/// Fails if others may write the entry. A sticky entry passes if `may_be_sticky`.
#[cfg(unix)]
fn ensure_unwritable(
    path: &Path,
    about: &std::fs::Metadata,
    may_be_sticky: bool,
) -> Result<(), Untrusted> {
    use std::os::unix::fs::MetadataExt as _;

    const OF_OTHERS: u32 = 0o022;
    const STICKY: u32 = 0o1000;

    let mode = about.mode();
    if mode & OF_OTHERS == 0 || may_be_sticky && mode & STICKY != 0 {
        return Ok(());
    }
    Err(Untrusted::Writable { path: path.to_owned() })
}

#[cfg(all(unix, not(miri)))]
#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt as _, chown, lchown, symlink},
    };

    use tempfile::TempDir;

    use super::*;

    /// Creates a folder that no one else may write; also returns its resolved path.
    fn folder() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        set(&path, 0o755);
        (folder, path)
    }

    /// Creates a file at this path, and its folder if that does not exist.
    fn file(path: PathBuf) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        set(path.parent().unwrap(), 0o755);
        set(&path, 0o644);
        path
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn refusal(path: &Path) -> String {
        resolve_trusted(path).unwrap_err().to_string()
    }

    #[test]
    fn file_writable_by_others_is_not_trusted() {
        let (_folder, outer) = folder();
        let file = file(outer.join("inner/file"));
        let inner = outer.join("inner");
        for (mode, is_trusted) in [
            (0o700, true),
            (0o755, true),
            (0o775, false),
            (0o757, false),
            (0o777, false),
            (0o1777, true), // the file belongs to this user
        ] {
            set(&inner, mode);
            assert_eq!(resolve_trusted(&file).is_ok(), is_trusted, "{mode:o}");
            assert_eq!(resolve_trusted(&inner).is_ok(), is_trusted, "{mode:o}");
        }
        set(&inner, 0o755);
        set(&outer, 0o777);
        assert!(refusal(&file).starts_with(&format!("{} may be written", outer.display())));
        set(&outer, 0o755);
        for mode in [0o664, 0o646, 0o1666] {
            set(&file, mode);
            assert!(refusal(&file).starts_with(&format!("{} may be", file.display())), "{mode:o}");
        }
        assert!(resolve_trusted(&outer.join("none")).unwrap_err().is_missing());
    }

    #[test]
    fn links_are_followed_and_checked() {
        let (_folder, outer) = folder();
        let file = file(outer.join("inner/file"));
        let link = outer.join("link");
        symlink("inner/../inner/file", &link).unwrap();
        assert_eq!(resolve_trusted(&link).unwrap(), file);
        set(&outer.join("inner"), 0o777);
        assert!(refusal(&link).contains("inner may be written"));
        set(&outer.join("inner"), 0o755);
        // A link that anyone could replace.
        let open = outer.join("open");
        fs::create_dir(&open).unwrap();
        symlink(&file, open.join("link")).unwrap();
        set(&open, 0o777);
        assert!(refusal(&open.join("link")).contains("open may be written"));
        symlink("round", outer.join("round")).unwrap();
        assert!(refusal(&outer.join("round")).contains("too many symbolic links"));
    }

    /// Only root can change the owner of a file.
    #[test]
    fn file_of_another_user_is_not_trusted() {
        const OTHER: u32 = 65534;

        if effective_user() != 0 {
            return;
        }
        let (_folder, outer) = folder();
        let [file, inside] = ["file", "theirs/file"].map(|name| file(outer.join(name)));
        let link = outer.join("link");
        symlink(&file, &link).unwrap();
        assert!(resolve_trusted(&link).is_ok() && resolve_trusted(&inside).is_ok());
        chown(outer.join("theirs"), Some(OTHER), None).unwrap();
        assert!(refusal(&inside).contains("theirs belongs to user 65534"));
        lchown(&link, Some(OTHER), None).unwrap();
        assert!(refusal(&link).contains("link belongs to user 65534"));
        chown(&file, Some(OTHER), None).unwrap();
        // Also in a folder like /tmp.
        set(&outer, 0o1777);
        assert!(refusal(&file).contains("file belongs to user 65534"));
    }
}
