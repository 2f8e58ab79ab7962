//! Writes to standard output, standard error, pipes and devices, whose readers may be slow.
//!
//! A write waits for its reader by `poll`, so that it also works on a nonblocking descriptor, which
//! another program may share with this one. The data is divided into parts that a pipe takes whole,
//! so that a signal ends the write.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write as _},
    os::{
        fd::AsFd,
        unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::Path,
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    io::Errno,
};

use crate::signals::Wait;

/// A pipe that is ready takes this number of bytes whole.
const PART: usize = 4096;

/// The interval at which a wait checks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Writes all bytes, and waits for a slow reader.
///
/// # Errors
/// When they cannot be written, or a signal has ended the wait.
pub(crate) fn write_all(out: impl AsFd, bytes: &[u8]) -> io::Result<()> {
    let (wait, mut left) = (Wait::begin(), bytes);
    let timeout = Timespec::try_from(LOOK).map_err(io::Error::other)?;
    while !left.is_empty() {
        let mut polled = [PollFd::new(&out, PollFlags::OUT)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {
                wait.check()?;
                continue;
            }
            // If the system refuses to poll, the write itself waits.
            Ok(_) | Err(_) => {}
        }
        match rustix::io::write(&out, &left[..left.len().min(PART)]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => left = &left[written..],
            Err(Errno::INTR | Errno::AGAIN) => wait.check()?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Prints to standard output. Succeeds if the reader closes it early.
///
/// # Errors
/// When standard output cannot be written.
pub fn print_as_it_is(text: &str) -> Result<()> {
    print_bytes(text.as_bytes()).context("cannot write to standard output")
}

fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    // Text that clap has printed comes first.
    match out.flush().and_then(|()| write_all(&out, bytes)) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes to a pipe or a device at `path`, or to a file named by a descriptor.
///
/// # Errors
/// When it cannot be written, or a signal has ended the wait for its reader.
pub(crate) fn write_to(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if is(path, io::stdout()) {
        return print_bytes(bytes);
    }
    if is(path, io::stderr()) {
        return write_all(io::stderr(), bytes);
    }
    write_all(opened(path)?, bytes)
}

/// Returns whether a path and a stream are the same file.
fn is(path: &Path, stream: impl AsFd) -> bool {
    let place = |about: fs::Metadata| (about.dev(), about.ino());
    let stream = stream.as_fd().try_clone_to_owned().map(File::from);
    let stream = stream.and_then(|stream| stream.metadata()).map(place);
    fs::metadata(path).map(place).is_ok_and(|path| stream.is_ok_and(|stream| path == stream))
}

/// Opens a pipe or a device, and waits for the reader of a named pipe.
fn opened(path: &Path) -> io::Result<File> {
    let wait = Wait::begin();
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    options.write(true).truncate(true).custom_flags(flags.bits().cast_signed());
    loop {
        let has_no_reader =
            |error: &io::Error| error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
        match options.open(path) {
            Err(error) if has_no_reader(&error) && fs::metadata(path)?.file_type().is_fifo() => {
                wait.check()?;
                thread::sleep(LOOK);
            }
            opened => return opened,
        }
    }
}
