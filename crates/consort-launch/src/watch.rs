//! The launcher's loop: it waits for signals, output, and the ends of processes.
//!
//! After the last process has ended, remaining output is still read and passed on, as long as it
//! has a reader. A signal or the job's timeout ends that too.

mod job_end;

use std::{
    io::{self, PipeReader},
    time::{Duration, Instant},
};

use consort_fabric::Rank;
use consort_machine::advice::of_call;
use consort_native::{Launcher, ProcessEnd, list_of_ranks};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, getpgid, getpgrp, getppid},
};

use crate::{
    children,
    grandchildren::Grandchildren,
    interrupts::{self, Interrupts, SignalEffect, status_of},
    launch::{EndReason, Launch, Outcome},
    output::{Output, Progress, Source, print_line},
    start::{StartedProcess, start},
    system::{self, ReceivedSignal, Signals},
};

/// How often the launcher checks for PEs run by descendants of its processes.
const LOOK: Duration = Duration::from_millis(50);
/// If processes are missing, the launcher warns this long after the last process has joined the
/// job.
const LATE_START: Duration = Duration::from_secs(10);
/// How long the processes may take after the launcher has passed on a signal.
const AFTER_SIGNAL: Duration = Duration::from_secs(5);
/// If a signal has ended the blamed process, the launcher waits this long for its own copy of the
/// signal.
const LATE: Duration = Duration::from_secs(1);
/// A stand-in for times later than clocks can represent.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

struct Watch<'l> {
    launch: &'l Launch,
    launcher: Launcher,
    running: Vec<StartedProcess>,
    grandchildren: Grandchildren,
    /// When a process last joined the job, and how many had joined by then.
    joined: Option<(Instant, usize)>,
    /// Whether the launcher has warned about late processes.
    has_warned: bool,
    sources: Vec<Source>,
    output: Output,
    outcome: Outcome,
    /// The PE whose end decides the status, if it is not known yet how it has ended.
    blamed: Option<Rank>,
    /// When the running processes get a signal to end, and when they are killed.
    ends: Option<[Instant; 2]>,
    timeout: Option<Instant>,
    /// The signals that ended the job.
    interrupts: Interrupts,
    /// The signal that ended the blamed process, and when.
    suspected: Option<(i32, Instant)>,
    /// A pipe that reaches its end when the front has ended. `None` after that.
    front: Option<PipeReader>,
    front_process: Option<Pid>,
}

/// Starts a job and waits for its end; returns the exit status.
pub(crate) fn run(launch: &Launch, signals: &mut Signals, front: PipeReader) -> u8 {
    children::inherit();
    let status = Watch::new(launch, signals, front).and_then(|watch| watch.run(signals));
    status.unwrap_or_else(|error| {
        children::kill_all(&[]);
        print_line(&error);
        if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
    })
}

impl<'l> Watch<'l> {
    /// Starts the job.
    fn new(launch: &'l Launch, signals: &Signals, front: PipeReader) -> io::Result<Self> {
        let processors = u32::try_from(launch.processors).unwrap_or(u32::MAX);
        let launcher = Launcher::new(launch.pes, processors, launch.binding)?;
        let begun = Instant::now();
        let (running, sources) = start(launch, &launcher, signals)?;
        Ok(Self {
            launch,
            launcher,
            running,
            grandchildren: Grandchildren::default(),
            joined: None,
            has_warned: false,
            sources,
            output: Output::new(launch.tags),
            outcome: Outcome { status: 0, reason: None, killed: Vec::new() },
            blamed: None,
            ends: None,
            timeout: launch.timeout.map(|limit| after(begun, limit)),
            interrupts: Interrupts::default(),
            suspected: None,
            front: Some(front),
            front_process: getppid(),
        })
    }

    fn run(mut self, signals: &mut Signals) -> io::Result<u8> {
        while !self.running.is_empty() {
            let ready = self.wait(signals)?;
            self.read(&ready);
            self.write();
            self.note_signal(signals);
            self.reap(signals);
            self.look_at_grandchildren();
            self.warn_of_late_starts();
            self.kill_overdue();
        }
        children::kill_all(&[]);
        self.note_late_signals(signals)?;
        self.finish(signals)?;
        Ok(self.outcome.status)
    }

    /// Waits until there is something to do. Returns which sources have data to read.
    fn wait(&mut self, signals: &Signals) -> io::Result<Vec<bool>> {
        let is_unknown = |one: &StartedProcess| self.launcher.process(one.rank).is_none();
        let looks = self.grandchildren.must_be_polled() || self.running.iter().any(is_unknown);
        let look = looks.then(|| Instant::now() + LOOK);
        let now = Instant::now();
        let dues = self.sources.iter().filter_map(|source| self.output.due(source, now));
        let ends = self.ends.into_iter().flatten().chain(self.timeout);
        let until = dues.chain(self.output.ends_of_holds(now)).chain(ends).chain(look).min();
        let limit = until.map(|until| {
            let left = until.saturating_duration_since(Instant::now());
            Timespec::try_from(left + Duration::from_millis(1)).unwrap_or_default()
        });
        let mut all = vec![PollFd::new(signals, PollFlags::IN)];
        // Sources that are not read now do not report their ends either.
        let is_read: Vec<bool> =
            self.sources.iter().map(|source| self.output.takes(source, now)).collect();
        let read = self.sources.iter().zip(&is_read).filter(|(_, is_read)| **is_read);
        all.extend(read.map(|(source, _)| PollFd::new(source, PollFlags::IN)));
        let sources = 1..all.len();
        all.extend(self.front.as_ref().map(|front| PollFd::new(front, PollFlags::IN)));
        let blocked = self.output.blocked();
        all.extend(blocked.map(|sink| PollFd::from_borrowed_fd(sink, PollFlags::OUT)));
        let ended = self.grandchildren.descriptors();
        all.extend(ended.map(|ended| PollFd::from_borrowed_fd(ended, PollFlags::IN)));
        match poll(&mut all, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(of_call("poll", &error.into())),
        }
        let full = self.output.full();
        let is_abandoned = self.front.is_some() && !all[sources.end].revents().is_empty();
        let mut polled = all[sources].iter().map(|one| !one.revents().is_empty());
        let ready = is_read.iter().map(|&is_read| is_read && polled.next() == Some(true)).collect();
        self.output.excuse(full, now.elapsed());
        if is_abandoned {
            self.front = None;
            self.fail(128 + 9, EndReason::Abandoned);
            self.ends = Some([Instant::now(); 2]);
        }
        Ok(ready)
    }

    /// Passes on available output, first of the source that was read longest ago.
    fn read(&mut self, ready: &[bool]) {
        let Self { sources, output, .. } = self;
        let mut all: Vec<usize> = (0..sources.len()).filter(|&at| ready[at]).collect();
        all.sort_by_key(|&at| sources[at].last_data());
        let mut ended = vec![false; sources.len()];
        for at in all {
            let source = &mut sources[at];
            if output.takes(source, Instant::now()) {
                ended[at] = output.pass_on(source) == Progress::End;
            }
        }
        let now = Instant::now();
        let mut ended = ended.into_iter();
        sources.retain_mut(|source| {
            output.pass_on_if_due(source, now);
            ended.next() != Some(true)
        });
    }

    /// Writes as much as there is room for.
    fn write(&mut self) {
        let written = self.output.write();
        self.ensure_written(written);
    }

    /// Ends the job if its output cannot be written.
    fn ensure_written(&mut self, written: io::Result<()>) {
        let Err(error) = written else { return };
        let (status, text) = match error.kind() {
            io::ErrorKind::BrokenPipe => {
                (128 + 13, "the reader of the job's output has closed it".to_owned())
            }
            _ => (1, format!("cannot write the job's output: {error}")),
        };
        self.fail(status, EndReason::NotWritten(text));
        self.ends = Some([Instant::now(); 2]);
    }

    /// Passes on the signals that have arrived.
    fn note_signal(&mut self, signals: &mut Signals) {
        while let Some(signal) = signals.next() {
            self.pass_on(signal);
        }
    }

    /// Passes a signal on.
    fn pass_on(&mut self, ReceivedSignal { number, from_terminal, sender }: ReceivedSignal) {
        if number == libc::SIGCHLD {
            return;
        }
        let now = Instant::now();
        let from_front = self.front_process.is_some_and(|front| front.as_raw_pid() == sender);
        let meaning = self.interrupts.note_signal(number, from_front, now);
        if meaning == SignalEffect::Copy {
            return;
        }
        // The terminal has also sent it to this process's group.
        let own = from_terminal.then(getpgrp);
        let has_it =
            |one: &&StartedProcess| own.is_some() && getpgid(Some(one.process)).ok() == own;
        let others = self.running.iter().filter(|one| !has_it(one));
        others.for_each(|one| system::send(one.process, number));
        match meaning {
            SignalEffect::Ends => self.ends = Some([now + AFTER_SIGNAL; 2]),
            SignalEffect::EndsNow => self.ends = Some([now; 2]),
            SignalEffect::PassedOn | SignalEffect::Copy => return,
        }
        if self.suspected.is_some_and(|(signal, at)| signal == number && now < at + LATE) {
            // The signal was sent to all processes, and reached the blamed one first.
            self.outcome.reason = Some(EndReason::Interrupted { signal: number });
            self.outcome.status = status_of(number);
        }
    }

    /// Waits briefly for the signal that ended a blamed process: it may have been sent to all
    /// processes, one after the other.
    fn note_late_signals(&mut self, signals: &mut Signals) -> io::Result<()> {
        let until = Instant::now() + interrupts::SAME;
        while self.suspected.is_some() && self.interrupts.count == 0 {
            let left = until.saturating_duration_since(Instant::now());
            let limit = Timespec::try_from(left).unwrap_or_default();
            match poll(&mut [PollFd::new(&*signals, PollFlags::IN)], Some(&limit)) {
                Ok(0) => break,
                Ok(_) | Err(rustix::io::Errno::INTR) => self.note_signal(signals),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Records the processes that have ended.
    fn reap(&mut self, signals: &mut Signals) {
        while let Some((process, end)) = children::next_ended() {
            let Some(at) = self.running.iter().position(|one| one.process == process) else {
                continue; // a process that one of the PEs has started
            };
            let StartedProcess { rank, .. } = self.running.swap_remove(at);
            // If a signal to all processes ended this one, the launcher's copy has arrived already.
            self.note_signal(signals);
            self.lose(rank, end);
        }
    }

    /// Checks for PEs that are not the processes that were started.
    fn look_at_grandchildren(&mut self) {
        for one in &self.running {
            let process = self.launcher.process(one.rank).and_then(|number| {
                i32::try_from(number).ok().and_then(Pid::from_raw).filter(|&pid| pid != one.process)
            });
            if let Some(process) = process {
                self.grandchildren.note(one.rank, process);
            }
        }
        for rank in self.grandchildren.ended() {
            // Only its parent learns how it ended.
            self.lose(rank, ProcessEnd::Gone);
        }
    }

    /// Warns once about processes that join the job long after the others, which may be waiting for
    /// them.
    fn warn_of_late_starts(&mut self) {
        let has_joined = |one: &&StartedProcess| self.launcher.process(one.rank).is_some();
        let (joined, mut late): (Vec<_>, Vec<_>) = self.running.iter().partition(has_joined);
        let now = Instant::now();
        let (since, count) = self.joined.unwrap_or((now, 0));
        if joined.len() > count {
            self.joined = Some((now, joined.len()));
        } else if count > 0 && !late.is_empty() && now >= since + LATE_START && !self.has_warned {
            self.has_warned = true;
            late.sort_by_key(|one| one.rank);
            let ranks: Vec<Rank> = late.into_iter().map(|one| one.rank).collect();
            let have = if ranks.len() == 1 { "has" } else { "have" };
            print_line(format_args!(
                "warning: {} {have} not started for {LATE_START:?}, and the others may be waiting: \
                 does every process of the job call Consort?",
                list_of_ranks(&ranks)
            ));
        }
    }

    /// Passes on the remaining output of the processes, and reports why the job ended early.
    fn finish(&mut self, signals: &mut Signals) -> io::Result<()> {
        self.ends = None;
        let mut has_reported = false;
        let mut until = None;
        loop {
            self.read_to_the_end();
            if self.sources.is_empty() && !has_reported {
                has_reported = true;
                self.say();
            }
            self.write();
            if self.output.blocked().next().is_none() && self.sources.is_empty() {
                return Ok(());
            }
            let now = Instant::now();
            if self.timeout.is_some_and(|timeout| timeout <= now) {
                self.time_out();
            }
            // A job that was ended does not wait for readers.
            let is_over = self.front.is_none()
                || !matches!(self.outcome.reason, None | Some(EndReason::Failed(_)));
            if is_over && until.is_none() {
                until = Some(after(now, self.launch.grace));
            }
            let seen = self.interrupts.count;
            if until.is_some_and(|until| until <= now) {
                break;
            }
            self.ends = until.map(|until| [until; 2]);
            self.wait(signals)?;
            self.note_signal(signals);
            if let Some(signal) = self.interrupts.last()
                && self.interrupts.count > seen
            {
                self.fail(status_of(signal), EndReason::Interrupted { signal });
                break;
            }
        }
        if !has_reported {
            self.say();
            self.write();
        }
        Ok(())
    }

    /// Reads everything for which there is room. No process is left that could write.
    fn read_to_the_end(&mut self) {
        let Self { sources, output, .. } = self;
        let mut written = Ok(());
        sources.retain_mut(|source| {
            while output.takes(source, Instant::now()) {
                if output.pass_on(source) != Progress::Something {
                    output.end(source);
                    return false;
                }
                if let Err(error) = output.write() {
                    written = Err(error);
                }
            }
            true
        });
        self.ensure_written(written);
    }

    /// Adds the final messages.
    fn say(&mut self) {
        let is_quiet = matches!(self.outcome.reason, None | Some(EndReason::Ended));
        let outcome = (!is_quiet).then(|| self.outcome.to_string());
        let is_new = |(text, _): &(String, Vec<Rank>)| match &self.outcome.reason {
            Some(EndReason::Failed(reason)) => !text.ends_with(reason),
            _ => true,
        };
        let reports = self.launcher.reports().into_iter().filter(is_new);
        let reports = reports.map(|(text, ranks)| match ranks.len() == self.launch.pes as usize {
            true if ranks.len() > 1 => format!("all {} PEs: {text}", ranks.len()),
            _ => format!("{}: {text}", list_of_ranks(&ranks)),
        });
        let copies = Some(self.launcher.copies()).filter(|&count| count > 0 && self.launch.pes > 1);
        let copies = copies.map(|count| {
            format!(
                "warning: {count} of {} processes each ran a separate job of threads, and none \
                 was a PE of this job: use `Job::from_env` so that the processes are the PEs of \
                 one job, or start the program without `consort run`",
                self.launch.pes
            )
        });
        let lines: Vec<String> = reports.chain(copies).chain(outcome).collect();
        self.output.close(&lines);
    }
}

/// Returns `time` plus `duration`, capped at [`FOREVER`].
fn after(time: Instant, duration: Duration) -> Instant {
    time + duration.min(FOREVER)
}
