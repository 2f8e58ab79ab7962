//! Files that a user names: reading within a limit, atomic replacement, and checks of who may
//! change them.
//!
//! A path on the command line, in the environment or in a configuration folder may name a pipe
//! without a writer, an endless device, or a file of another user. All crates access such files
//! through these functions:
//!
//! - [`open`], [`read`] and [`read_text`] accept only regular files of at most [`MOST_BYTES`];
//! - [`create_folders`] creates folders that only this user may write;
//! - [`FileLock`] excludes other processes;
//! - [`replace`](replace()) puts a new file in the place of an old one;
//! - [`resolve_trusted`] refuses what another user could have written (`trust`);
//! - [`start_error`] explains why a program did not start.
//!
//! The errors say what is wrong with the file and what to do. Callers add the path. These functions
//! do not read files of the system, such as those in `/proc`.

mod replace;
mod starting;
mod trust;

use std::{
    fs::{self, DirBuilder, File, FileType, Metadata, OpenOptions},
    io::{self, ErrorKind, Read},
    ops::Deref,
    path::Path,
};

pub use replace::{Target, replace, try_to_replace};
pub use starting::start_error;
pub use trust::{Untrusted, open_private_folder, resolve_trusted};

/// The most bytes that are read from a file: far more than any of our files has.
pub const MOST_BYTES: u64 = 64 << 20;

/// Opens a regular file for reading. Never waits for the writer of a pipe.
///
/// # Errors
/// When it cannot be opened, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    // Check first, because opening a device may already have an effect.
    ensure_regular(&fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    without_waiting(options.read(true));
    let file = options.open(path)?;
    // Another file may have taken its place in the meantime.
    ensure_regular(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file.
///
/// # Errors
/// As [`open`], and when it has more than [`MOST_BYTES`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The length in the metadata may be wrong: the file may grow, and files in `/proc` have none.
    open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let limit_mib = MOST_BYTES >> 20;
        let why =
            format!("it has more than {limit_mib} MiB, the limit for such a file: name another");
        return Err(io::Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads a regular file of text.
///
/// # Errors
/// As [`read`], and when it is not in UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let why = format!("invalid UTF-8 at byte {offset}: name another file, or convert it");
        io::Error::new(ErrorKind::InvalidData, why)
    })
}

/// Creates a folder and its missing ancestors. Other users may at most read them.
///
/// # Errors
/// When one cannot be created.
pub fn create_folders(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o755);
    builder.create(path)
}

/// Fails if a file is not a regular file.
///
/// # Errors
/// Says what the file is instead.
pub fn ensure_regular(file: &Metadata) -> io::Result<()> {
    if file.is_file() {
        return Ok(());
    }
    let kind = if file.is_dir() { ErrorKind::IsADirectory } else { ErrorKind::InvalidInput };
    let why = format!("it is {}: name a regular file", name_of(file.file_type()));
    Err(io::Error::new(kind, why))
}

/// Returns what a file is that is not a regular file.
#[cfg(unix)]
fn name_of(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;

    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn name_of(kind: FileType) -> &'static str {
    if kind.is_dir() { "a directory" } else { "a device" }
}

/// Sets flags: opening a pipe for reading would wait for its writer, and a terminal could become
/// the controlling terminal of this process.
#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;

    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
}

#[cfg(not(unix))]
fn without_waiting(_: &mut OpenOptions) {}

/// An open file or folder that is locked until this is dropped. The lock is advisory, and some file
/// systems have none: then it excludes nobody.
///
/// A forked child has a copy of the descriptor, and the system keeps the lock as long as there is a
/// copy. So closing the file does not suffice: dropping this unlocks it.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Waits until no other process has locked the file, and locks it.
    #[must_use]
    pub fn new(file: File) -> Self {
        // An error means that there are no locks.
        let _ = file.lock();
        Self(file)
    }
}

impl Deref for FileLock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // The only remedy for an error is to close the file, which comes next.
        let _ = self.0.unlock();
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn special_files_are_refused_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let [pipe, socket] = ["pipe", "socket"].map(|name| folder.join(name));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        for (path, what) in [
            (&*pipe, "it is a named pipe: name a regular file"),
            (&*socket, "it is a socket: name a regular file"),
            (folder, "it is a directory: name a regular file"),
            (Path::new("/dev/zero"), "it is a device: name a regular file"),
        ] {
            let refused = [open(path).map(drop), read(path).map(drop), read_text(path).map(drop)];
            for error in refused.map(Result::unwrap_err) {
                assert_eq!(error.to_string(), what);
            }
        }
        let missing = read(&folder.join("missing")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_read_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        // A sparse file: it takes no space on the disk.
        File::create(&path).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("more than 64 MiB, the limit"), "{error}");
        fs::write(&path, "some text").unwrap();
        assert_eq!(read_text(&path).unwrap(), "some text");
        fs::write(&path, b"some \xff").unwrap();
        assert!(read_text(&path).unwrap_err().to_string().starts_with("invalid UTF-8 at byte 5"));
    }

    #[test]
    fn copies_of_the_descriptor_do_not_keep_the_lock() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let lock = FileLock::new(file.reopen().expect("the file"));
        let _copy = lock.try_clone().expect("a copy");
        assert!(file.as_file().try_lock().is_err());
        drop(lock);
        assert!(file.as_file().try_lock().is_ok());
    }
}
