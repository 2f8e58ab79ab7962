//! Processes that no launcher watches: they watch each other.
//!
//! Each process watches one other process, the next in the order of ranks. When that process ends,
//! the watching process records the end, and then watches the next one. The record fails the
//! launches that need the process that has ended. So the nearest earlier process that still runs
//! notices each end, with one descriptor per process.
//!
//! A thread watches. If its process leaves the job before others, the thread stays until all
//! processes have ended their programs, because no other thread watches the next process. It blocks
//! all signals, so that the program's handlers run only on the program's threads. No error ends it,
//! except that the program has closed its descriptors.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{Arc, atomic::Ordering::SeqCst},
    thread,
    time::Duration,
};

use consort_fabric::Rank;
use consort_machine::{
    advice::{of_call, of_thread},
    system::{fork::stay_loaded, signals::without_signals},
    token::ProcessToken,
};

use super::{control_file::ControlFile, meeting::hold::Hold, process_end::ProcessEnd};
use crate::system::{
    socket,
    watch::{WatchedProcess, wait_readable},
};

/// How often the thread looks for what no descriptor reports.
const LOOK: Duration = Duration::from_millis(100);

/// The number of a process, and the time at which it started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) process: u32,
    pub(super) started: u64,
}

/// The watch of a process. When it is dropped, the process leaves the job.
pub(super) struct Watch {
    control: Arc<ControlFile>,
    own: Rank,
    /// A socket and not a pipe, because a write to a pipe that nobody reads raises a signal.
    leaves: UnixStream,
    process: ProcessToken,
}

/// The thread's part.
struct Watcher {
    control: Arc<ControlFile>,
    own: Rank,
    /// The processes by rank.
    all: Vec<Identity>,
    /// Readable when the process has left the job. `None` after that.
    has_left: Option<UnixStream>,
    /// The place where the processes have met, if this process has it.
    place: Option<Hold>,
}

impl Watch {
    /// Starts to watch, in a thread.
    ///
    /// # Errors
    /// When the system has no socket or no thread, with its advice.
    pub(super) fn start(
        control: &Arc<ControlFile>,
        own: Rank,
        all: Vec<Identity>,
        place: Option<Hold>,
    ) -> Result<Self, String> {
        let pair = UnixStream::pair();
        let (has_left, leaves) = pair.map_err(|error| of_call("socketpair", &error).to_string())?;
        let watcher =
            Watcher { control: Arc::clone(control), own, all, has_left: Some(has_left), place };
        stay_loaded(); // the thread may outlive a plug-in that is unloaded
        let thread = thread::Builder::new().name("consort watch".to_owned());
        let started = without_signals(|| thread.spawn(move || watcher.run()));
        started.map_err(|error| of_thread(&error))?;
        let process = ProcessToken::current();
        Ok(Self { control: Arc::clone(control), own, leaves, process })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.process.is_current() {
            return; // a forked child is not in the job
        }
        let own = &self.control.processes()[self.own.index()];
        let (begun, ended) = (own.begun.load(SeqCst), own.ended.load(SeqCst));
        if begun == 0 || ended < begun {
            self.control.lose(self.own, ProcessEnd::Withdrawn);
        }
        // If the thread has ended, nobody reads.
        let _ = socket::send(&self.leaves, &[0]);
    }
}

impl Watcher {
    fn run(mut self) {
        let mut watched = self.after(self.own);
        while let Some((rank, process)) = &watched {
            if process.has_ended() {
                self.control.lose(*rank, ProcessEnd::Gone);
                watched = self.after(*rank);
                continue;
            }
            if self.has_left.is_none() && self.is_over() {
                return;
            }
            let descriptor = process.descriptor();
            let looks = self.has_left.is_none() || descriptor.is_none();
            if self.wait(descriptor, looks.then_some(LOOK)).is_err() {
                thread::sleep(LOOK);
            }
        }
        // Nobody is left to be watched, but the place is held until this process leaves.
        while self.has_left.is_some() {
            match self.wait(None, None) {
                Err(error) if error.raw_os_error() == Some(libc::EBADF) => return,
                // The process may have too many open files to turn another one away.
                Err(_) => thread::sleep(LOOK),
                Ok(()) => {}
            }
        }
    }

    /// Returns the next process that is not known to have ended. `None` if there is no other.
    fn after(&self, rank: Rank) -> Option<(Rank, WatchedProcess)> {
        let count = self.all.len();
        let others = (1..count).map(|step| (rank.index() + step) % count);
        let mut others = others.take_while(|&at| at != self.own.index());
        let at = others.find(|&at| self.control.processes()[at].lost().is_none())?;
        let Identity { process, started } = self.all[at];
        Some((Rank::new(at), WatchedProcess::new(process, started)))
    }

    /// Waits for something to do.
    fn wait(&mut self, watched: Option<BorrowedFd<'_>>, limit: Option<Duration>) -> io::Result<()> {
        let has_left = self.has_left.as_ref().map(AsFd::as_fd);
        let place = self.place.as_ref().map(Hold::descriptor);
        let all: Vec<BorrowedFd<'_>> = [has_left, place, watched].into_iter().flatten().collect();
        let ready = wait_readable(&all, limit)?;
        let mut ready = ready.into_iter();
        let [leaves, asked] = [has_left.is_some(), place.is_some()]
            .map(|is_there| is_there && ready.next() == Some(true));
        if leaves {
            self.has_left = None;
            self.place = None;
        }
        if let Some(place) = self.place.as_ref().filter(|_| asked) {
            place.turn_away()?;
        }
        Ok(())
    }

    /// Returns whether no end of a process matters any more.
    fn is_over(&self) -> bool {
        let begun = self.control.processes()[self.own.index()].begun.load(SeqCst);
        let Some(last) = begun.checked_sub(1) else { return true };
        // A launch that a process has missed before it was made has no failure. All processes find
        // that when they begin it.
        self.control.have_all_ended(last)
            || self.control.failure().is_some()
            || self.control.missed(last).is_some()
    }
}

#[cfg(all(test, not(any(miri, loom))))]
mod tests {
    use super::*;
    use crate::{processes::binding::Binding, system::watch::own_start};

    #[test]
    fn watch_is_over_if_a_process_ends_before_the_launch_is_made() {
        let control = ControlFile::create(3, 1, Binding::default()).expect("a file");
        let own = Identity { process: std::process::id(), started: own_start().expect("a time") };
        let (all, control) = (vec![own; 3], Arc::new(control));
        let watcher = Watcher {
            control: Arc::clone(&control),
            own: Rank(1),
            all,
            has_left: None,
            place: None,
        };
        control.processes()[1].begun.store(1, SeqCst);
        assert!(!watcher.is_over(), "the others may begin the launch");
        control.lose(Rank(0), ProcessEnd::Gone);
        assert!(watcher.is_over(), "the others find that PE 0 has missed it");
    }

    #[test]
    fn process_that_could_not_begin_keeps_its_reason_after_it_has_ended() {
        let control = ControlFile::create(2, 1, Binding::default()).expect("a file");
        control.lose(Rank(1), ProcessEnd::Withdrawn);
        control.lose(Rank(1), ProcessEnd::Gone);
        assert_eq!(control.processes()[1].lost(), Some(ProcessEnd::Withdrawn));
    }
}
