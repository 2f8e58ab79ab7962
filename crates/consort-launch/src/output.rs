//! Passes on what the processes write, line by line.
//!
//! A line that is not complete waits for its end, unless nothing comes for a while: then somebody
//! may be asked a question. What another process writes then begins on a new line.
//!
//! What a stream has no room for is kept, up to some bytes; then the processes that write to this
//! stream wait, as they would if they wrote to it themselves.

use std::{
    io::{self, Read, Write as _},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use consort_fabric::Rank;
use rustix::fs::fstat;

use crate::sink::Sink;

/// How long an incomplete line waits.
const PATIENCE: Duration = Duration::from_millis(200);
/// The most bytes that are read at a time, and that an incomplete line may have.
const BYTES: usize = 64 << 10;

/// What a process writes to one of its streams.
pub(crate) trait Stream: Read + AsFd {}

impl<S: Read + AsFd> Stream for S {}

/// A stream of a process, until its end.
pub(crate) struct Source {
    rank: Rank,
    is_error: bool,
    stream: Box<dyn Stream>,
    incomplete: Vec<u8>,
    /// When the last of it came.
    came: Instant,
}

/// What has come of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Something,
    Nothing,
    End,
}

/// Where all goes.
pub(crate) struct Output {
    tags: bool,
    /// Standard output, and standard error.
    sinks: [Sink; 2],
    /// Of each: the PE whose incomplete line was written last.
    open: [Option<Rank>; 2],
    /// Whether both are one terminal, pipe or file. Then all goes to the first.
    are_one: bool,
    /// What is read comes here first.
    bytes: Box<[u8]>,
}

impl Source {
    pub(crate) fn new(rank: Rank, is_error: bool, stream: Box<dyn Stream>) -> Self {
        Self { rank, is_error, stream, incomplete: Vec::new(), came: Instant::now() }
    }

    /// When its incomplete line is to be passed on, if it has one.
    fn due(&self) -> Option<Instant> {
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
        let (out, error) = (io::stdout(), io::stderr());
        let place = |stream| fstat(stream).ok().map(|about| (about.st_dev, about.st_ino));
        let are_one = place(out.as_fd()).is_some_and(|at| place(error.as_fd()) == Some(at));
        let sinks = [Sink::new(out.as_fd()), Sink::new(error.as_fd())];
        Self { tags, sinks, open: [None; 2], are_one, bytes: vec![0; BYTES].into() }
    }

    /// Where what is written to standard output or to standard error goes.
    fn sink(&mut self, is_error: bool) -> &mut Sink {
        &mut self.sinks[usize::from(is_error && !self.are_one)]
    }

    /// Whether there is room for what a source has.
    pub(crate) fn takes(&self, source: &Source) -> bool {
        !self.sinks[usize::from(source.is_error && !self.are_one)].is_full()
    }

    /// When something is to be passed on, though its line is not complete.
    pub(crate) fn due(&self, source: &Source) -> Option<Instant> {
        source.due().filter(|_| self.takes(source))
    }

    /// What waits to have room.
    pub(crate) fn blocked(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sinks.iter().filter_map(Sink::blocked)
    }

    /// Reads once, and passes on the complete lines.
    pub(crate) fn pass_on(&mut self, source: &mut Source) -> Progress {
        match source.stream.read(&mut self.bytes) {
            Ok(count) if count > 0 => {
                source.came = Instant::now();
                source.incomplete.extend_from_slice(&self.bytes[..count]);
                let end = source.incomplete.iter().rposition(|&byte| byte == b'\n');
                if let Some(end) = end {
                    let lines: Vec<u8> = source.incomplete.drain(..=end).collect();
                    self.add(source, &lines);
                }
                if source.incomplete.len() >= BYTES {
                    self.flush(source);
                }
                Progress::Something
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Progress::Nothing,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Progress::Something,
            Ok(_) | Err(_) => {
                self.flush(source);
                Progress::End
            }
        }
    }

    /// Passes on an incomplete line that has waited for long.
    pub(crate) fn pass_on_if_due(&mut self, source: &mut Source, now: Instant) {
        if self.due(source).is_some_and(|due| due <= now) {
            self.flush(source);
        }
    }

    /// Passes on what a source has begun.
    pub(crate) fn flush(&mut self, source: &mut Source) {
        let rest = std::mem::take(&mut source.incomplete);
        if !rest.is_empty() {
            self.add(source, &rest);
        }
    }

    /// Adds lines, of which the last may be incomplete.
    fn add(&mut self, source: &Source, lines: &[u8]) {
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
        self.sink(source.is_error).add(&text);
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// When standard output cannot be written to, or nobody reads standard error. What else there
    /// is to be said of standard error, nobody could be told.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        let [out, error] = self.sinks.each_mut().map(Sink::write);
        let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        out.and(error.or_else(|error| if is_broken(&error) { Err(error) } else { Ok(()) }))
    }

    /// Ends a line that is open on standard error, and adds one of the launcher, if there is one.
    pub(crate) fn close(&mut self, line: Option<&str>) {
        let [out, error] = std::mem::take(&mut self.open);
        if error.is_some() || self.are_one && out.is_some() {
            self.sink(true).add(b"\n");
        }
        if let Some(line) = line {
            self.sink(true).add(format!("consort run: {line}\n").as_bytes());
        }
    }
}

/// Tells something on standard error. If nobody can be told, nothing is lost but that.
pub(crate) fn tell(text: impl std::fmt::Display) {
    let _ = io::stderr().write_all(format!("consort run: {text}\n").as_bytes());
}
