//! Signals that end a job, and the exit statuses of processes that they end.
//!
//! A signal to a process group reaches the launcher and its front, and the front passes it on to
//! the launcher. So one signal may arrive twice, once each way.

use std::time::{Duration, Instant};

use libc::c_int;

/// A signal that arrives again this soon, the same way, is the same signal.
pub(crate) const SAME: Duration = Duration::from_millis(100);
/// A signal that also arrives the other way this soon is the same signal.
const COPY: Duration = Duration::from_secs(1);
/// The signals that end a job.
const ALL: [c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The meaning of a signal for the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalEffect {
    /// None: only the program knows its meaning.
    PassedOn,
    /// It is a copy of an earlier signal.
    Copy,
    /// The job must end.
    Ends,
    /// The job must end now: an earlier signal already ended it.
    EndsNow,
}

/// The signals that have arrived.
#[derive(Default)]
pub(crate) struct Interrupts {
    /// The last signal sent to the launcher itself, and the last that its front passed on.
    seen: [Option<(c_int, Instant)>; 2],
    last: Option<c_int>,
    /// The number of signals, without copies.
    pub(crate) count: u32,
}

impl Interrupts {
    /// Returns the last signal.
    pub(crate) fn last(&self) -> Option<c_int> {
        self.last
    }

    /// Records a signal that arrives now, and returns its meaning.
    pub(crate) fn note_signal(
        &mut self,
        number: c_int,
        from_front: bool,
        now: Instant,
    ) -> SignalEffect {
        if !ALL.contains(&number) {
            return SignalEffect::PassedOn;
        }
        let way = usize::from(from_front);
        let [own, other] = [self.seen[way], self.seen[1 - way]];
        let is_recent = |seen: Option<(c_int, Instant)>, limit| {
            seen.is_some_and(|(before, at)| before == number && now < at + limit)
        };
        if is_recent(own, SAME) {
            return SignalEffect::Copy;
        }
        self.seen[way] = Some((number, now));
        if own.is_none() && is_recent(other, COPY) {
            return SignalEffect::Copy;
        }
        self.last = Some(number);
        self.count += 1;
        if self.count == 1 { SignalEffect::Ends } else { SignalEffect::EndsNow }
    }
}

/// Returns the exit status of a process that a signal has ended.
pub(crate) fn status_of(signal: c_int) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |signal| 128_u8.saturating_add(signal))
}

/// Returns whether this status means that the signal, or a later SIGKILL, ended the process.
pub(crate) fn has_ended_by(signal: c_int, status: u8) -> bool {
    [signal, libc::SIGTERM, libc::SIGKILL].into_iter().any(|one| status == status_of(one))
}

/// Returns the signal that ended a process, if it is one that ends jobs.
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
            assert_eq!(all.note_signal(libc::SIGINT, first, at(0)), SignalEffect::Ends);
            assert_eq!(all.note_signal(libc::SIGINT, first, at(50)), SignalEffect::Copy);
            assert_eq!(all.note_signal(libc::SIGINT, !first, at(900)), SignalEffect::Copy);
            assert_eq!(all.note_signal(libc::SIGINT, first, at(950)), SignalEffect::EndsNow);
            assert_eq!((all.last(), all.count), (Some(libc::SIGINT), 2));
        }
    }

    #[test]
    fn later_or_other_signal_is_a_new_one() {
        let begun = Instant::now();
        let mut all = Interrupts::default();
        assert_eq!(all.note_signal(libc::SIGUSR1, true, begun), SignalEffect::PassedOn);
        assert_eq!((all.last(), all.count), (None, 0));
        assert_eq!(all.note_signal(libc::SIGTERM, true, begun), SignalEffect::Ends);
        assert_eq!(all.note_signal(libc::SIGINT, false, begun), SignalEffect::EndsNow);
        let mut all = Interrupts::default();
        assert_eq!(all.note_signal(libc::SIGTERM, true, begun), SignalEffect::Ends);
        assert_eq!(all.note_signal(libc::SIGTERM, false, begun + 2 * COPY), SignalEffect::EndsNow);
    }
}
