//! Passes on the output of the processes, line by line.
//!
//! The bytes of a stream are passed on unchanged and in order, and lines of different processes do
//! not mix, however long they are. An incomplete line waits for its end, unless nothing arrives for
//! a while: it may be a question to the user.
//!
//! An incomplete line that was passed on *holds* its stream: output of other processes waits in
//! their pipes until the line ends. The hold ends when the process pauses, ends, or has written to
//! the line for a long time, so no process waits forever. Time spent waiting for a slow reader does
//! not count. Output of other processes then follows the line directly, as under `mpirun` and
//! `srun`. The rest of the line follows that output, and no longer holds the stream. Only tags and
//! the launcher's own messages begin on a new line. The process whose last read is longest ago is
//! read first, so each gets a turn.
//!
//! Output for which a stream has no room is buffered, up to a limit. Then the processes that write
//! to this stream wait, as they would if they wrote to it directly.

use std::{
    io::{self, Read, Write as _},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use consort_fabric::Rank;
use rustix::fs::fstat;

use crate::sink::Sink;

/// How long an incomplete line waits before it is passed on.
const LINE_TIMEOUT: Duration = Duration::from_millis(200);
/// The longest pause within an incomplete line that holds its stream.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest time that a line may hold its stream.
const LONGEST: Duration = Duration::from_secs(10);
/// If a line holds its stream while the launcher waits for a reader, at most this much of the wait
/// counts as holding.
const MOST_COUNTED: Duration = Duration::from_millis(100);
/// The most bytes that are read at once; an incomplete line of this length is passed on.
const BYTES: usize = 64 << 10;

/// The read end of one of a process's output streams.
pub(crate) trait Stream: Read + AsFd {}

impl<S: Read + AsFd> Stream for S {}

/// An output stream of a process, until its end.
pub(crate) struct Source {
    rank: Rank,
    is_error: bool,
    stream: Box<dyn Stream>,
    incomplete: Vec<u8>,
    /// When its last data arrived.
    last_data: Instant,
    /// Whether the beginning of its current line has been passed on.
    is_open: bool,
    /// Whether another process has written since that.
    gave_way: bool,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Something,
    Nothing,
    End,
}

/// The line that was written last and has not ended.
struct OpenLine {
    rank: Rank,
    is_error: bool,
    hold: Option<LineHold>,
}

/// A line's hold on its stream, during which others wait.
struct LineHold {
    began: Instant,
    /// When the last data of the line arrived.
    last_data: Instant,
}

impl LineHold {
    fn until(&self) -> Instant {
        (self.last_data + PAUSE).min(self.began + LONGEST)
    }
}

/// The destination of all output.
pub(crate) struct Output {
    tags: bool,
    /// Standard output and standard error.
    sinks: [Sink; 2],
    /// The open line of each sink.
    open: [Option<OpenLine>; 2],
    /// Whether both are the same terminal, pipe or file. Then all output goes to the first sink.
    are_one: bool,
    /// The read buffer.
    bytes: Box<[u8]>,
}

impl Source {
    pub(crate) fn new(rank: Rank, is_error: bool, stream: Box<dyn Stream>) -> Self {
        let (incomplete, last_data) = (Vec::new(), Instant::now());
        Self { rank, is_error, stream, incomplete, last_data, is_open: false, gave_way: false }
    }

    /// Returns when its last data arrived.
    pub(crate) fn last_data(&self) -> Instant {
        self.last_data
    }

    /// Returns when its incomplete line must be passed on, if it has one.
    fn due(&self) -> Option<Instant> {
        (!self.incomplete.is_empty()).then(|| self.last_data + LINE_TIMEOUT)
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
        Self { tags, sinks, open: [None, None], are_one, bytes: vec![0; BYTES].into() }
    }

    /// Returns the index of the sink for standard output or standard error.
    fn sink_index(&self, is_error: bool) -> usize {
        usize::from(is_error && !self.are_one)
    }

    /// Returns the open line of the source's sink, if it belongs to the source.
    fn own_line(&mut self, source: &Source) -> Option<&mut OpenLine> {
        let open = self.open[self.sink_index(source.is_error)].as_mut();
        open.filter(|open| open.rank == source.rank && open.is_error == source.is_error)
    }

    /// Returns whether data of a source can be passed on: there is room, and no line of another
    /// source holds the stream.
    pub(crate) fn takes(&self, source: &Source, now: Instant) -> bool {
        let at = self.sink_index(source.is_error);
        let is_held_from_it = self.open[at].as_ref().is_some_and(|open| {
            let is_own = open.rank == source.rank && open.is_error == source.is_error;
            !is_own && open.hold.as_ref().is_some_and(|hold| now < hold.until())
        });
        !self.sinks[at].is_full() && !is_held_from_it
    }

    /// Returns when an incomplete line must be passed on.
    pub(crate) fn due(&self, source: &Source, now: Instant) -> Option<Instant> {
        source.due().filter(|_| self.takes(source, now))
    }

    /// Returns when the lines that hold their streams give way.
    pub(crate) fn ends_of_holds(&self, now: Instant) -> impl Iterator<Item = Instant> {
        let holds = self.open.iter().flatten().filter_map(|open| open.hold.as_ref());
        holds.map(LineHold::until).filter(move |&until| now < until)
    }

    /// Returns which sinks have no room.
    pub(crate) fn full(&self) -> [bool; 2] {
        self.sinks.each_ref().map(Sink::is_full)
    }

    /// Records that these sinks had no room for the time `waited`.
    pub(crate) fn excuse(&mut self, full: [bool; 2], waited: Duration) {
        for (open, _) in self.open.iter_mut().zip(full).filter(|(_, is_full)| *is_full) {
            if let Some(hold) = open.as_mut().and_then(|open| open.hold.as_mut()) {
                hold.last_data += waited;
                hold.began += waited.saturating_sub(MOST_COUNTED);
            }
        }
    }

    /// Returns the descriptors that wait for room.
    pub(crate) fn blocked(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sinks.iter().filter_map(Sink::blocked)
    }

    /// Reads once, and passes on complete lines.
    pub(crate) fn pass_on(&mut self, source: &mut Source) -> Progress {
        match source.stream.read(&mut self.bytes) {
            Ok(count) if count > 0 => {
                source.last_data = Instant::now();
                if let Some(OpenLine { hold: Some(hold), .. }) = self.own_line(source) {
                    hold.last_data = source.last_data;
                }
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
                self.end(source);
                Progress::End
            }
        }
    }

    /// Passes on an incomplete line that has waited long enough.
    pub(crate) fn pass_on_if_due(&mut self, source: &mut Source, now: Instant) {
        if self.due(source, now).is_some_and(|due| due <= now) {
            self.flush(source);
        }
    }

    /// Passes on the last data of a source, which then no longer holds its stream.
    pub(crate) fn end(&mut self, source: &mut Source) {
        self.flush(source);
        if let Some(open) = self.own_line(source) {
            open.hold = None;
        }
    }

    /// Passes on the incomplete line of a source.
    fn flush(&mut self, source: &mut Source) {
        let rest = std::mem::take(&mut source.incomplete);
        if !rest.is_empty() {
            self.add(source, &rest);
        }
    }

    /// Adds lines; the last may be incomplete.
    fn add(&mut self, source: &mut Source, lines: &[u8]) {
        let at = self.sink_index(source.is_error);
        let own = self.own_line(source).map(|open| open.hold.take());
        let mut continues = own.is_some();
        source.gave_way |= source.is_open && !continues;
        let mut text = Vec::with_capacity(lines.len() + 16);
        if self.tags && self.open[at].is_some() && !continues {
            text.push(b'\n');
        }
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            if self.tags && !continues {
                text.extend_from_slice(format!("[{}] ", source.rank).as_bytes());
            }
            text.extend_from_slice(line);
            continues = false;
        }
        let has_ended = lines.contains(&b'\n');
        source.gave_way &= !has_ended;
        source.is_open = lines.last() != Some(&b'\n');
        // If this continues a line, its hold keeps the time at which it began.
        let hold = own.filter(|_| !has_ended).unwrap_or_else(|| {
            (!source.gave_way)
                .then(|| LineHold { began: Instant::now(), last_data: source.last_data })
        });
        let (rank, is_error) = (source.rank, source.is_error);
        self.open[at] = source.is_open.then_some(OpenLine { rank, is_error, hold });
        self.sinks[at].add(&text);
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// When standard output cannot be written, or standard error has no reader. Other errors of
    /// standard error are dropped, because they could not be printed.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        let [out, error] = self.sinks.each_mut().map(Sink::write);
        let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        out.and(error.or_else(|error| if is_broken(&error) { Err(error) } else { Ok(()) }))
    }

    /// Adds the launcher's lines, if any, to standard error, each on a separate line.
    pub(crate) fn close(&mut self, lines: &[String]) {
        let at = self.sink_index(true);
        if !lines.is_empty() && self.open[at].take().is_some() {
            self.sinks[at].add(b"\n");
        }
        for line in lines {
            self.sinks[at].add(format!("consort run: {line}\n").as_bytes());
        }
    }
}

/// Prints a line to standard error, and ignores errors.
pub(crate) fn print_line(text: impl std::fmt::Display) {
    let _ = io::stderr().write_all(format!("consort run: {text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter};

    use super::*;

    /// Creates a sink, and two processes that write to it.
    fn two() -> (Output, PipeReader, [(Source, PipeWriter); 2]) {
        let (reader, writer) = io::pipe().expect("a pipe");
        let sinks = [Sink::new(writer.as_fd()), Sink::new(writer.as_fd())];
        let open = [None, None];
        let output =
            Output { tags: false, sinks, open, are_one: true, bytes: vec![0; BYTES].into() };
        let source = |rank| {
            let (out, write) = io::pipe().expect("a pipe");
            (Source::new(Rank(rank), false, Box::new(out)), write)
        };
        (output, reader, [source(0), source(1)])
    }

    /// Passes on as much as is written.
    fn pass(output: &mut Output, (source, writer): &mut (Source, PipeWriter), text: &[u8]) {
        writer.write_all(text).expect("a reader");
        assert_eq!(output.pass_on(source), Progress::Something);
    }

    /// Returns the output that was passed on so far.
    fn passed(output: &mut Output, reader: &mut PipeReader) -> Vec<u8> {
        output.write().expect("a reader");
        let mut bytes = vec![0; 1 << 20];
        let count = reader.read(&mut bytes).expect("a pipe");
        bytes.truncate(count);
        bytes
    }

    #[test]
    fn long_line_holds_its_stream_until_it_ends() {
        let (mut output, mut reader, [mut one, mut other]) = two();
        pass(&mut output, &mut one, &[0xff; BYTES]);
        assert_eq!(passed(&mut output, &mut reader), [0xff; BYTES]);
        let now = Instant::now();
        assert!(output.takes(&one.0, now) && !output.takes(&other.0, now));
        pass(&mut output, &mut one, b"\0end\n");
        assert!(output.takes(&other.0, Instant::now()));
        pass(&mut output, &mut other, b"other\n");
        assert_eq!(passed(&mut output, &mut reader), b"\0end\nother\n");
    }

    #[test]
    fn paused_or_endless_line_gives_way_once() {
        for pauses in [true, false] {
            let (mut output, mut reader, [mut one, mut other]) = two();
            pass(&mut output, &mut one, &[b'x'; BYTES]);
            passed(&mut output, &mut reader);
            let hold = output.own_line(&one.0).and_then(|open| open.hold.as_mut());
            let hold = hold.expect("it holds the stream");
            match pauses {
                true => hold.last_data -= PAUSE,
                false => hold.began -= LONGEST,
            }
            assert!(output.takes(&other.0, Instant::now()));
            pass(&mut output, &mut other, b"other\n");
            pass(&mut output, &mut one, &[b'y'; BYTES]);
            let text = [b"other\n", &[b'y'; BYTES - 6][..]].concat();
            assert!(passed(&mut output, &mut reader) == text, "all that a pipe takes");
            assert!(output.takes(&other.0, Instant::now()), "it holds the stream no more");
            pass(&mut output, &mut one, &[b"\n", &[b'z'; BYTES - 1][..]].concat());
            pass(&mut output, &mut one, b"z");
            passed(&mut output, &mut reader);
            assert!(!output.takes(&other.0, Instant::now()), "another line does");
        }
    }

    #[test]
    fn only_tags_begin_on_a_new_line() {
        for (tags, text) in [(false, &b"onetwo\nthree"[..]), (true, b"[0] one\n[1] two\n[0] three")]
        {
            let (mut output, mut reader, [mut one, mut other]) = two();
            output.tags = tags;
            pass(&mut output, &mut one, b"one");
            output.end(&mut one.0);
            pass(&mut output, &mut other, b"two\n");
            pass(&mut output, &mut one, b"three");
            output.end(&mut one.0);
            assert_eq!(passed(&mut output, &mut reader), text);
        }
    }

    #[test]
    fn time_without_a_reader_is_not_a_pause() {
        let (mut output, mut reader, [mut one, other]) = two();
        pass(&mut output, &mut one, &[b'x'; BYTES]);
        passed(&mut output, &mut reader);
        output.excuse([true, false], 2 * LONGEST);
        assert!(!output.takes(&other.0, Instant::now() + LONGEST));
        assert!(output.takes(&other.0, Instant::now() + 2 * LONGEST + PAUSE));
    }

    #[test]
    fn process_that_ends_within_a_line_holds_nothing() {
        let (mut output, mut reader, [mut one, mut other]) = two();
        pass(&mut output, &mut one, &[b'x'; BYTES]);
        let (mut one, writer) = one;
        drop(writer);
        passed(&mut output, &mut reader);
        assert!(!output.takes(&other.0, Instant::now()));
        assert_eq!(output.pass_on(&mut one), Progress::End);
        assert!(output.takes(&other.0, Instant::now()));
        pass(&mut output, &mut other, b"other\n");
        assert_eq!(passed(&mut output, &mut reader), b"other\n");
    }
}
