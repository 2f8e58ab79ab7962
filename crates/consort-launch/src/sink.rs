//! The destination of output. It never waits for a reader: it buffers output that cannot be written
//! at once.
//!
//! A pipe or a terminal is reopened, so that it does not block here but still does for other
//! processes. If that is impossible, small pieces are written whenever the system reports room.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, Mode, OFlags, fstat, open},
    io::Errno,
    termios::isatty,
};

/// The largest number of bytes in one write.
const BYTES: usize = 64 << 10;
/// The number of bytes that a pipe with any room accepts.
const PIECE: usize = 4 << 10;

/// One of the two output streams.
pub(crate) struct Sink {
    /// `None` if output can no longer be written.
    descriptor: Option<OwnedFd>,
    /// Whether the descriptor was opened here, so that it never blocks.
    is_own: bool,
    waiting: Vec<u8>,
    /// How much of `waiting` has been written.
    written: usize,
}

impl Sink {
    pub(crate) fn new(stream: BorrowedFd<'_>) -> Self {
        let own = reopened(stream);
        let is_own = own.is_some();
        let descriptor = own.or_else(|| stream.try_clone_to_owned().ok());
        Self { descriptor, is_own, waiting: Vec::new(), written: 0 }
    }

    /// Adds text, unless output can no longer be written.
    pub(crate) fn add(&mut self, text: &[u8]) {
        if self.descriptor.is_some() {
            self.waiting.extend_from_slice(text);
        }
    }

    /// Returns the descriptor if data waits for room.
    pub(crate) fn blocked(&self) -> Option<BorrowedFd<'_>> {
        let descriptor = self.descriptor.as_ref()?;
        (!self.waiting.is_empty()).then(|| descriptor.as_fd())
    }

    /// Returns whether the buffer is full.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() - self.written >= BYTES
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// Returns the system's error; nothing is written after that.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        let Some(descriptor) = &self.descriptor else { return Ok(()) };
        let most = if self.is_own { BYTES } else { PIECE };
        while self.written < self.waiting.len() {
            if !self.is_own && !has_room(descriptor.as_fd()) {
                return Ok(());
            }
            let end = self.waiting.len().min(self.written + most);
            match rustix::io::write(descriptor, &self.waiting[self.written..end]) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => {
                    self.give_up();
                    return Err(error.into());
                }
            }
        }
        self.waiting.clear();
        self.written = 0;
        Ok(())
    }

    /// Drops the waiting data and everything added later.
    pub(crate) fn give_up(&mut self) {
        self.descriptor = None;
        self.waiting = Vec::new();
        self.written = 0;
    }
}

/// Reopens the same pipe or terminal for this process only.
fn reopened(stream: BorrowedFd<'_>) -> Option<OwnedFd> {
    let kind = FileType::from_raw_mode(fstat(stream).ok()?.st_mode);
    if kind != FileType::Fifo && !isatty(stream) {
        return None;
    }
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    open(format!("/proc/self/fd/{}", stream.as_raw_fd()), flags, Mode::empty()).ok()
}

/// Returns whether a write would make progress or report an error.
fn has_room(descriptor: BorrowedFd<'_>) -> bool {
    let mut all = [PollFd::from_borrowed_fd(descriptor, PollFlags::OUT)];
    poll(&mut all, Some(&Timespec::default())).map_or(true, |count| count > 0)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn output_without_room_waits_and_is_kept() {
        for is_own in [true, false] {
            let (mut reader, writer) = io::pipe().expect("a pipe");
            let mut sink = Sink::new(writer.as_fd());
            assert!(sink.is_own);
            if !is_own {
                sink.descriptor = writer.as_fd().try_clone_to_owned().ok();
                sink.is_own = false;
            }
            let text: Vec<u8> = (0..=u8::MAX).cycle().take(1 << 20).collect();
            sink.add(&text);
            sink.write().expect("a reader");
            assert!(sink.is_full() && sink.blocked().is_some());
            let mut read = Vec::new();
            while read.len() < text.len() {
                let mut bytes = [0; 10_000];
                let count = reader.read(&mut bytes).expect("a pipe");
                read.extend_from_slice(&bytes[..count]);
                sink.write().expect("a reader");
            }
            assert!(read == text && sink.blocked().is_none() && !sink.is_full());
            drop(reader);
            sink.add(b"more");
            let error = sink.write().expect_err("no reader");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
            sink.add(b"more");
            assert!(sink.write().is_ok() && sink.blocked().is_none());
        }
    }

    #[test]
    fn file_is_written_at_its_shared_offset() {
        let file = rustix::fs::memfd_create("text", rustix::fs::MemfdFlags::CLOEXEC);
        let mut file = std::fs::File::from(file.expect("a file"));
        let mut sink = Sink::new(file.as_fd());
        assert!(!sink.is_own);
        sink.add(&[b'x'; 3 * PIECE + 1]);
        sink.write().expect("a file takes all");
        assert_eq!(io::Seek::stream_position(&mut file).expect("a file"), 3 * 4096 + 1);
    }
}
