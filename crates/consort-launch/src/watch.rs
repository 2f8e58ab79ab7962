//! The launcher's loop: it waits for signals, output, and the ends of processes.

use std::{
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use consort_fabric::Rank;
use consort_native::{End, Launcher};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

use crate::{
    children,
    launch::{Launch, Outcome, Trouble},
    output::{Going, Output, Source},
    start::{Started, start},
    system::{self, Came, Signals},
};

/// How often the launcher looks for PEs that are run by what its processes have started.
const LOOK: Duration = Duration::from_millis(50);
/// How long the processes may take after a signal that the launcher has passed on.
const AFTER_SIGNAL: Duration = Duration::from_secs(5);
/// The exit status of a job that has taken too long, as of the command `timeout`.
const TIMED_OUT: u8 = 124;

/// A PE that a process runs which one of the launcher's has started.
struct Grandchild {
    rank: Rank,
    process: u32,
    descriptor: Option<OwnedFd>,
}

struct Watch<'l> {
    launch: &'l Launch,
    launcher: Launcher,
    running: Vec<Started>,
    grandchildren: Vec<Grandchild>,
    sources: Vec<Source>,
    output: Output,
    outcome: Outcome,
    /// When processes that still run get a signal to end, and when they are killed.
    ends: Option<[Instant; 2]>,
    timeout: Option<Instant>,
    has_signalled: bool,
}

/// Starts a job and waits for its end.
///
/// # Errors
/// When its processes cannot be started.
pub(crate) fn run(launch: &Launch, signals: &mut Signals) -> io::Result<Outcome> {
    children::inherit();
    let launcher = Launcher::new(launch.pes, launch.cores, launch.binding)?;
    let begun = Instant::now();
    let (running, sources) = match start(launch, &launcher) {
        Ok(started) => started,
        Err(error) => {
            children::kill_all();
            return Err(error);
        }
    };
    let outcome = Outcome { status: 0, trouble: None, killed: Vec::new() };
    let mut watch = Watch {
        launch,
        launcher,
        running,
        grandchildren: Vec::new(),
        sources,
        output: Output::new(launch.tags),
        outcome,
        ends: None,
        timeout: launch.timeout.map(|limit| begun + limit),
        has_signalled: false,
    };
    while !watch.running.is_empty() {
        watch.wait(signals)?;
        watch.read();
        while let Some(came) = signals.next() {
            watch.pass_on(came);
        }
        watch.reap();
        watch.look_at_grandchildren();
        watch.end_what_is_due();
    }
    // What the processes wrote before they ended.
    watch.read();
    children::kill_all();
    watch.read();
    watch.output.close();
    Ok(watch.outcome)
}

impl Watch<'_> {
    /// Waits until there is something to do.
    fn wait(&self, signals: &Signals) -> io::Result<()> {
        let looks = self.running.iter().any(|one| self.launcher.process(one.rank).is_none());
        let look = looks.then(|| Instant::now() + LOOK);
        let dues = self.sources.iter().filter_map(Source::due);
        let ends = self.ends.into_iter().flatten().chain(self.timeout);
        let until = dues.chain(ends).chain(look).min();
        let limit = until.map(|until| {
            let left = until.saturating_duration_since(Instant::now());
            Timespec::try_from(left + Duration::from_millis(1)).unwrap_or_default()
        });
        let mut all = vec![PollFd::new(signals, PollFlags::IN)];
        all.extend(self.sources.iter().map(|source| PollFd::new(source, PollFlags::IN)));
        let ended = self.grandchildren.iter().filter_map(|one| one.descriptor.as_ref());
        all.extend(ended.map(|descriptor| PollFd::new(descriptor, PollFlags::IN)));
        match poll(&mut all, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Passes on what there is to read.
    fn read(&mut self) {
        let Self { sources, output, .. } = self;
        let now = Instant::now();
        let mut broken = false;
        sources.retain_mut(|source| {
            let passed = output.pass_on(source);
            let passed = passed.and_then(|going| {
                output.pass_on_if_due(source, now)?;
                Ok(going)
            });
            broken |= passed.is_err();
            passed.is_ok_and(|going| going == Going::On)
        });
        if broken && self.outcome.trouble.is_none() {
            self.sources.clear();
            self.fail(128 + 13, Trouble::NoReader);
            self.ends = Some([Instant::now(); 2]);
        }
    }

    /// Passes a signal on.
    fn pass_on(&mut self, Came { number, from_terminal }: Came) {
        if number == libc::SIGCHLD {
            return;
        }
        if !from_terminal {
            self.running.iter().for_each(|one| system::send(one.process, number));
        }
        if [libc::SIGUSR1, libc::SIGUSR2].contains(&number) {
            return;
        }
        let now = Instant::now();
        // The second ends the job at once.
        self.ends = Some(if self.has_signalled { [now; 2] } else { [now + AFTER_SIGNAL; 2] });
        self.has_signalled = true;
    }

    /// Takes note of the processes that have ended.
    fn reap(&mut self) {
        while let Ok(Some((process, end))) = children::next_ended() {
            let Some(at) = self.running.iter().position(|one| one.process == process) else {
                continue; // something that one of them has started
            };
            let Started { rank, .. } = self.running.swap_remove(at);
            self.lose(rank, end);
        }
    }

    /// A PE's process has ended.
    fn lose(&mut self, rank: Rank, end: End) {
        let is_missed = self.launcher.lose(rank, end);
        let status = match end {
            End::Exited(0) | End::Gone if !is_missed => return,
            End::Exited(0) | End::Gone => 1,
            End::Exited(status) => status,
            End::Killed(signal) => 128_u8.saturating_add(signal),
        };
        // It may have ended because of what another PE did.
        let failure = self.launcher.failure();
        let failure =
            failure.map_or_else(|| format!("PE {rank} {end}"), |failure| failure.to_string());
        self.fail(status, Trouble::Failed(failure));
    }

    /// The job has failed, unless it has before: the others may end by themselves, for a while.
    fn fail(&mut self, status: u8, trouble: Trouble) {
        if self.outcome.trouble.is_some() {
            return;
        }
        self.outcome.status = status;
        self.outcome.trouble = Some(trouble);
        let now = Instant::now();
        let ends = [now + self.launch.grace / 2, now + self.launch.grace];
        self.ends = Some(self.ends.map_or(ends, |before| before.min(ends)));
    }

    /// Looks for PEs that other processes run than those that were started.
    fn look_at_grandchildren(&mut self) {
        let mut ended = Vec::new();
        for one in &self.running {
            let process = self.launcher.process(one.rank);
            let own = u32::try_from(one.process.as_raw_nonzero().get()).unwrap_or(0);
            let Some(process) = process.filter(|&process| process != own) else { continue };
            if self.grandchildren.iter().all(|known| known.process != process) {
                let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
                let descriptor = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
                let rank = one.rank;
                if descriptor.is_none() {
                    ended.push(rank); // it has ended already
                }
                self.grandchildren.push(Grandchild { rank, process, descriptor });
            }
        }
        for one in &mut self.grandchildren {
            let Some(descriptor) = &one.descriptor else { continue };
            let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
            let now = Timespec::default();
            if poll(&mut polled, Some(&now)).is_ok_and(|count| count > 0) {
                one.descriptor = None;
                ended.push(one.rank);
            }
        }
        for rank in ended {
            // How it ended its parent alone learns.
            self.lose(rank, End::Gone);
        }
    }

    /// Ends processes whose time is over.
    fn end_what_is_due(&mut self) {
        let now = Instant::now();
        if self.timeout.is_some_and(|timeout| timeout <= now) {
            self.timeout = None;
            let mut running: Vec<Rank> = self.running.iter().map(|one| one.rank).collect();
            running.sort();
            let limit = self.launch.timeout.unwrap_or_default();
            self.fail(TIMED_OUT, Trouble::TimedOut { limit, running });
            self.ends = Some([now, now + self.launch.grace / 2]);
        }
        let Some([ends, killed]) = self.ends else { return };
        if killed <= now {
            self.ends = None;
            for one in &self.running {
                system::send(one.process, libc::SIGKILL);
                self.outcome.killed.push(one.rank);
            }
            self.outcome.killed.sort();
        } else if ends <= now {
            self.ends = Some([killed; 2]);
            for one in &self.running {
                system::send(one.process, libc::SIGTERM);
            }
        }
    }
}
