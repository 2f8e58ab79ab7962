//! The signals that are to end a job, and the statuses of processes that end by them.
//!
//! Whoever sends one to a group of processes sends it to the launcher and to its front, and the
//! front passes it on to the launcher. So it may come twice, once each way, and is one signal.

use std::time::{Duration, Instant};

use libc::c_int;

/// A signal that comes again so soon, in the same way, is the same one.
pub(crate) const SAME: Duration = Duration::from_millis(100);
/// A signal that comes so soon in the other way too is the same one.
const COPY: Duration = Duration::from_secs(1);
/// The signals that end a job.
const ALL: [c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// What a signal means for the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing: the program knows what it means.
    PassedOn,
    /// It is one that has come before.
    Copy,
    /// The job is to end.
    Ends,
    /// The job ends now: it was to end before.
    EndsNow,
}

/// The signals that have come.
#[derive(Default)]
pub(crate) struct Interrupts {
    /// The last that was sent to the launcher itself, and the last that its front has passed on.
    heard: [Option<(c_int, Instant)>; 2],
    last: Option<c_int>,
    /// How many have come.
    pub(crate) count: u32,
}

impl Interrupts {
    /// The last that has come.
    pub(crate) fn last(&self) -> Option<c_int> {
        self.last
    }

    /// What a signal means that has come now.
    pub(crate) fn hear(&mut self, number: c_int, from_front: bool, now: Instant) -> Meaning {
        if !ALL.contains(&number) {
            return Meaning::PassedOn;
        }
        let way = usize::from(from_front);
        let [own, other] = [self.heard[way], self.heard[1 - way]];
        let is_recent = |heard: Option<(c_int, Instant)>, limit| {
            heard.is_some_and(|(before, at)| before == number && now < at + limit)
        };
        if is_recent(own, SAME) {
            return Meaning::Copy;
        }
        self.heard[way] = Some((number, now));
        if own.is_none() && is_recent(other, COPY) {
            return Meaning::Copy;
        }
        self.last = Some(number);
        self.count += 1;
        if self.count == 1 { Meaning::Ends } else { Meaning::EndsNow }
    }
}

/// The exit status of a process that a signal has ended.
pub(crate) fn status_of(signal: c_int) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |signal| 128_u8.saturating_add(signal))
}

/// Whether this status means that the signal, or the SIGKILL that followed it, ended the process.
pub(crate) fn has_ended_by(signal: c_int, status: u8) -> bool {
    [signal, libc::SIGTERM, libc::SIGKILL].into_iter().any(|one| status == status_of(one))
}

/// The signal by which a process has ended, if it is one that ends jobs.
pub(crate) fn of_status(status: u8) -> Option<c_int> {
    ALL.into_iter().find(|&signal| status == status_of(signal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_to_a_group_comes_twice_and_is_one() {
        let begun = Instant::now();
        let at = |millis| begun + Duration::from_millis(millis);
        for first in [false, true] {
            let mut all = Interrupts::default();
            assert_eq!(all.hear(libc::SIGINT, first, at(0)), Meaning::Ends);
            assert_eq!(all.hear(libc::SIGINT, first, at(50)), Meaning::Copy);
            assert_eq!(all.hear(libc::SIGINT, !first, at(900)), Meaning::Copy);
            assert_eq!(all.hear(libc::SIGINT, first, at(950)), Meaning::EndsNow);
            assert_eq!((all.last(), all.count), (Some(libc::SIGINT), 2));
        }
    }

    #[test]
    fn other_signals_and_later_ones_are_others() {
        let begun = Instant::now();
        let mut all = Interrupts::default();
        assert_eq!(all.hear(libc::SIGUSR1, true, begun), Meaning::PassedOn);
        assert_eq!((all.last(), all.count), (None, 0));
        assert_eq!(all.hear(libc::SIGTERM, true, begun), Meaning::Ends);
        assert_eq!(all.hear(libc::SIGINT, false, begun), Meaning::EndsNow);
        let mut all = Interrupts::default();
        assert_eq!(all.hear(libc::SIGTERM, true, begun), Meaning::Ends);
        assert_eq!(all.hear(libc::SIGTERM, false, begun + 2 * COPY), Meaning::EndsNow);
    }
}
