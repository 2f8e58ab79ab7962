//! PEs that a child of the launcher has started, such as a shell or a debugger.
//!
//! The launcher learns only that they have ended. Only the parents learn the exit status.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use consort_fabric::Rank;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open, test_kill_process},
};

/// A PE's process that the launcher has not started.
struct Grandchild {
    rank: Rank,
    process: Pid,
    state: GrandchildState,
}

enum GrandchildState {
    /// It runs, and the descriptor reports its end.
    HasPidfd(OwnedFd),
    /// It seems to run, but has no descriptor: its end must be polled for.
    Polled,
    Ended,
}

/// All known grandchildren.
#[derive(Default)]
pub(crate) struct Grandchildren(Vec<Grandchild>);

impl Grandchildren {
    /// Records a PE's process, unless it is known already.
    pub(crate) fn note(&mut self, rank: Rank, process: Pid) {
        if self.0.iter().all(|known| known.process != process) {
            let state = match pidfd_open(process, PidfdFlags::empty()) {
                Ok(descriptor) => GrandchildState::HasPidfd(descriptor),
                // Even if it has ended already: polling will find that.
                Err(_) => GrandchildState::Polled,
            };
            self.0.push(Grandchild { rank, process, state });
        }
    }

    /// Returns the descriptors that report their ends.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().filter_map(|one| match &one.state {
            GrandchildState::HasPidfd(descriptor) => Some(descriptor.as_fd()),
            _ => None,
        })
    }

    /// Returns whether some have no descriptor, so that their ends must be polled for.
    pub(crate) fn must_be_polled(&self) -> bool {
        self.0.iter().any(|one| matches!(one.state, GrandchildState::Polled))
    }

    /// Returns those that have ended since the last call.
    pub(crate) fn ended(&mut self) -> Vec<Rank> {
        let mut ended = Vec::new();
        for one in &mut self.0 {
            let has_ended = match &one.state {
                GrandchildState::Ended => false,
                GrandchildState::HasPidfd(descriptor) => {
                    let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
                    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|count| count > 0)
                }
                // Any other error says nothing about the process.
                GrandchildState::Polled => test_kill_process(one.process) == Err(Errno::SRCH),
            };
            if has_ended {
                one.state = GrandchildState::Ended;
                ended.push(one.rank);
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn grandchild_ends_are_notified_or_polled() {
        for has_pidfd in [true, false] {
            let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
            let process = Pid::from_child(&child);
            let mut all = Grandchildren::default();
            all.note(Rank(3), process);
            assert!(all.descriptors().count() == 1 && !all.must_be_polled());
            if !has_pidfd {
                all.0[0].state = GrandchildState::Polled;
                assert!(all.must_be_polled());
            }
            assert_eq!(all.ended(), []);
            drop(child.stdin.take());
            child.wait().expect("it ends");
            assert_eq!(all.ended(), [Rank(3)]);
            assert!(all.ended().is_empty() && !all.must_be_polled());
            all.note(Rank(3), process);
            assert_eq!(all.0.len(), 1);
        }
    }

    #[test]
    fn grandchild_that_ended_early_is_found() {
        let mut child = Command::new("true").spawn().expect("a process");
        let process = Pid::from_child(&child);
        child.wait().expect("it ends");
        let mut all = Grandchildren::default();
        all.note(Rank(1), process);
        assert_eq!(all.ended(), [Rank(1)]);
    }
}
