//! Passes on what the processes write, line by line.
//!
//! A line that is not complete waits for its end, unless nothing comes for a while: then somebody
//! may be asked a question. What another process writes then begins on a new line.

use std::{
    io::{self, IsTerminal as _, Read, Write},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use consort_fabric::Rank;

/// How long an incomplete line waits.
const PATIENCE: Duration = Duration::from_millis(200);
/// The most bytes that are read at a time, and that an incomplete line may have.
const BYTES: usize = 64 << 10;

/// What a process writes to one of its streams.
pub(crate) trait Stream: Read + AsFd {}

impl<S: Read + AsFd> Stream for S {}

/// A stream of a process, until its end.
pub(crate) struct Source {
    pub(crate) rank: Rank,
    is_error: bool,
    stream: Box<dyn Stream>,
    incomplete: Vec<u8>,
    /// When the last of it came.
    came: Instant,
}

/// Whether a stream goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Going {
    On,
    Over,
}

/// Where all goes.
pub(crate) struct Output {
    tags: bool,
    /// Of standard output, and of standard error: the PE whose incomplete line was written last.
    open: [Option<Rank>; 2],
    /// Whether both are one terminal.
    are_one: bool,
}

impl Source {
    pub(crate) fn new(rank: Rank, is_error: bool, stream: Box<dyn Stream>) -> Self {
        Self { rank, is_error, stream, incomplete: Vec::new(), came: Instant::now() }
    }

    /// When its incomplete line is to be passed on, if it has one.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.incomplete.is_empty()).then(|| self.came + PATIENCE)
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Output {
    pub(crate) fn new(tags: bool) -> Self {
        let are_one = io::stdout().is_terminal() && io::stderr().is_terminal();
        Self { tags, open: [None; 2], are_one }
    }

    /// Reads what is there, and passes on the complete lines.
    ///
    /// # Errors
    /// When nobody reads the output any more.
    pub(crate) fn pass_on(&mut self, source: &mut Source) -> io::Result<Going> {
        let mut bytes = vec![0; BYTES];
        match source.stream.read(&mut bytes) {
            Ok(0) => {
                self.flush(source)?;
                Ok(Going::Over)
            }
            Ok(count) => {
                source.came = Instant::now();
                source.incomplete.extend_from_slice(&bytes[..count]);
                let end = source.incomplete.iter().rposition(|&byte| byte == b'\n');
                if let Some(end) = end {
                    let lines: Vec<u8> = source.incomplete.drain(..=end).collect();
                    self.write(source, &lines)?;
                }
                if source.incomplete.len() >= BYTES {
                    self.flush(source)?;
                }
                Ok(Going::On)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Going::On),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Going::On),
            Err(_) => {
                self.flush(source)?;
                Ok(Going::Over)
            }
        }
    }

    /// Passes on an incomplete line that has waited for long.
    ///
    /// # Errors
    /// When nobody reads the output any more.
    pub(crate) fn pass_on_if_due(&mut self, source: &mut Source, now: Instant) -> io::Result<()> {
        if source.due().is_some_and(|due| due <= now) { self.flush(source) } else { Ok(()) }
    }

    fn flush(&mut self, source: &mut Source) -> io::Result<()> {
        let rest = std::mem::take(&mut source.incomplete);
        if rest.is_empty() { Ok(()) } else { self.write(source, &rest) }
    }

    /// Writes lines, of which the last may be incomplete.
    fn write(&mut self, source: &Source, lines: &[u8]) -> io::Result<()> {
        let own = usize::from(source.is_error);
        let mut text = Vec::with_capacity(lines.len() + 16);
        let mut goes_on = self.open[own] == Some(source.rank);
        let is_other_open = self.are_one && self.open[1 - own].take().is_some();
        if is_other_open || self.open[own].is_some() && !goes_on {
            text.push(b'\n');
        }
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            if self.tags && !goes_on {
                text.extend_from_slice(format!("[{}] ", source.rank).as_bytes());
            }
            text.extend_from_slice(line);
            goes_on = false;
        }
        self.open[own] = (lines.last() != Some(&b'\n')).then_some(source.rank);
        if source.is_error {
            let mut error = io::stderr().lock();
            error.write_all(&text)
        } else {
            let mut out = io::stdout().lock();
            out.write_all(&text)?;
            out.flush()
        }
    }

    /// Ends a line that is open on standard error, so that the next one stands by itself.
    pub(crate) fn close(&mut self) {
        let [out, error] = std::mem::take(&mut self.open);
        if error.is_some() || self.are_one && out.is_some() {
            eprintln!();
        }
    }
}
