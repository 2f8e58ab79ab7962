//! Atomic replacement of a file that a user names: a reader finds the old content or the new one,
//! and a failed write leaves the old one.
//!
//! The new content goes to a temporary file in the same folder, which is flushed to the disk and
//! then renamed. Symbolic links are followed, so a link stays, and its target is replaced. Pipes
//! and devices cannot be replaced: [`Target`] distinguishes them.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use super::ensure_regular;

/// The number of names to try for a temporary file.
const NAME_TRIES: usize = 64;

/// The most symbolic links to follow, as on Linux.
const MOST_LINKS: usize = 40;

/// The kind of file to which output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A regular file, or none yet. The path does not end in a symbolic link.
    File(PathBuf),
    /// A pipe, a socket, a device, or a file named by a descriptor. It can only be written in
    /// place.
    Stream(PathBuf),
}

impl Target {
    /// Finds the file that a write to `path` would change. A dangling symbolic link names a new
    /// file.
    ///
    /// # Errors
    /// When it is a folder, or cannot be looked up.
    pub fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(about) if about.is_dir() => ensure_regular(&about)?,
            Ok(about) if !about.is_file() => return Ok(Self::Stream(path.to_owned())),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        let mut place = path.to_owned();
        for _ in 0..MOST_LINKS {
            let Ok(target) = fs::read_link(&place) else { return Ok(Self::File(place)) };
            let folder = folder_of(&place);
            // The links there represent open files.
            if folder.canonicalize()?.starts_with("/proc") {
                return Ok(Self::Stream(path.to_owned()));
            }
            place = folder.join(target);
        }
        Err(io::Error::other("too many symbolic links"))
    }
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Replaces the file at `path` by one with this content. It keeps the mode of the old file, and its
/// owner if permitted. The new mode never has the bits of `withheld`.
///
/// # Errors
/// When it is not a regular file, or cannot be written. The old file is then unchanged.
pub fn replace(path: &Path, content: &[u8], withheld: u32) -> io::Result<()> {
    let place = regular(path)?;
    let (temporary, file) = create_next_to(&place, withheld)?;
    let written = write_flushed(file, content).and_then(|()| fs::rename(&temporary, &place));
    if written.is_err() {
        // The write error is reported, whether or not the temporary file can be removed.
        let _ = fs::remove_file(&temporary);
        return written;
    }
    // The rename is durable once the folder is flushed, which not every file system supports.
    let _ = File::open(folder_of(&place)).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Creates the temporary file of [`replace`] and removes it, to find errors early.
///
/// # Errors
/// When the file cannot be created.
pub fn try_to_replace(path: &Path) -> io::Result<()> {
    let (temporary, _) = create_next_to(&regular(path)?, 0)?;
    fs::remove_file(temporary)
}

/// Returns the path of the regular file that `path` names.
fn regular(path: &Path) -> io::Result<PathBuf> {
    match Target::of(path)? {
        Target::File(place) => Ok(place),
        Target::Stream(place) => {
            ensure_regular(&fs::metadata(place)?)?;
            Err(io::Error::new(ErrorKind::InvalidInput, "it is a descriptor: name a file"))
        }
    }
}

/// Creates a temporary file in the folder of `place`, with the mode of the file there. Its name
/// differs from those of files that crashed processes have left.
fn create_next_to(place: &Path, withheld: u32) -> io::Result<(PathBuf, File)> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let old = match fs::metadata(place) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut taken = None;
    for _ in 0..NAME_TRIES {
        // Relaxed: the serial only makes names distinct within this process.
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let path = folder_of(place).join(format!(".consort.{}.{serial}.tmp", process::id()));
        match create(&path, old.as_ref(), withheld) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => taken = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(taken.unwrap_or_else(|| ErrorKind::AlreadyExists.into()))
}

/// Creates a new file with the mode and, if permitted, the owner of an old one.
#[cfg(unix)]
fn create(path: &Path, old: Option<&fs::Metadata>, withheld: u32) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};

    let kept = old.map(|old| old.mode() & 0o777 & !withheld);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(kept.unwrap_or(0o666 & !withheld));
    let file = options.open(path)?;
    let (Some(old), Some(kept)) = (old, kept) else { return Ok(file) };
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Without the permission, the file belongs to this user.
        let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
    }
    // The umask of this process may have removed bits.
    file.set_permissions(fs::Permissions::from_mode(kept))?;
    Ok(file)
}

/// Creates a new file.
#[cfg(not(unix))]
fn create(path: &Path, _: Option<&fs::Metadata>, _: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Writes a new file and waits until its content is on the disk.
fn write_flushed(mut file: File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a file").permissions().mode() & 0o777
    }

    #[test]
    fn replaced_file_keeps_its_mode_but_for_withheld_bits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (old, withheld, new) in [(0o600, 0, 0o600), (0o666, 0, 0o666), (0o666, 0o022, 0o644)] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(old)).unwrap();
            replace(&path, b"new", withheld).unwrap();
            assert_eq!((mode(&path), fs::read_to_string(&path).unwrap()), (new, "new".to_owned()));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn link_target_is_replaced_or_created() {
        let folder = tempfile::tempdir().unwrap();
        let [link, other, file] = ["link", "other", "file"].map(|name| folder.path().join(name));
        symlink("other", &link).unwrap();
        symlink("file", &other).unwrap();
        for content in ["first", "second"] {
            replace(&link, content.as_bytes(), 0).unwrap();
            assert!(link.is_symlink() && other.is_symlink());
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
        }
        symlink("round", folder.path().join("round")).unwrap();
        assert!(replace(&folder.path().join("round"), b"", 0).is_err());
    }

    #[test]
    fn streams_and_folders_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        for (path, why) in [
            (folder.path(), "it is a directory: name a regular file"),
            (Path::new("/dev/null"), "it is a device: name a regular file"),
        ] {
            assert_eq!(replace(path, b"", 0).unwrap_err().to_string(), why);
        }
        let file = File::create(folder.path().join("file")).unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
        let descriptor = PathBuf::from(format!("/proc/self/fd/{descriptor}"));
        assert_eq!(Target::of(&descriptor).unwrap(), Target::Stream(descriptor.clone()));
        assert!(replace(&descriptor, b"", 0).is_err());
        assert!(try_to_replace(&folder.path().join("new")).is_ok());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn file_left_by_a_crash_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let [first, second] = [(); 2].map(|()| create_next_to(&path, 0).unwrap().0);
        assert_ne!(first, second);
        replace(&path, b"text", 0).unwrap();
        assert!(first.exists() && second.exists());
    }

    #[test]
    fn old_file_stays_without_a_temporary_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        replace(&path, b"old", 0).unwrap();
        for serial in 0..4096 {
            let name = format!(".consort.{}.{serial}.tmp", process::id());
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        assert!(replace(&path, b"new", 0).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    }
}
