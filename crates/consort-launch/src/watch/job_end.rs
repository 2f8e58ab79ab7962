//! The end of a job: which process made it fail, and when the remaining ones are ended.

use std::time::Instant;

use consort_fabric::Rank;
use consort_native::{Failure, ProcessEnd};

use super::{Watch, after};
use crate::{
    interrupts::{self, has_ended_by, status_of},
    launch::EndReason,
    system,
};

/// The exit status of a job that took too long, as for the command `timeout`.
const TIMED_OUT: u8 = 124;

impl Watch<'_> {
    /// Handles the end of a PE's process.
    pub(super) fn lose(&mut self, rank: Rank, end: ProcessEnd) {
        let is_missed = self.launcher.lose(rank, end);
        let own = match end {
            ProcessEnd::Exited(0) | ProcessEnd::Gone | ProcessEnd::Withdrawn => None,
            ProcessEnd::Exited(status) => Some(status),
            ProcessEnd::Killed(signal) => Some(128_u8.saturating_add(signal)),
        };
        let was_ended = [libc::SIGTERM, libc::SIGKILL].map(status_of).map(Some);
        if self.blamed == Some(rank) && !was_ended.contains(&own) {
            self.outcome.status = own.unwrap_or(self.outcome.status);
        }
        if own.is_none() && !is_missed {
            return;
        }
        let is_chosen = matches!(self.launcher.failure(), Some(Failure::Ended { .. }));
        if let Some(signal) = self.interrupts.last().filter(|_| !is_chosen) {
            return self.interrupt(signal, own);
        }
        if self.outcome.reason.is_some() {
            return;
        }
        self.suspected = own.and_then(interrupts::of_status).map(|signal| (signal, Instant::now()));
        // Another PE may have caused it to end.
        let own = own.unwrap_or(1);
        match self.launcher.failure() {
            None => self.fail(own, EndReason::Failed(format!("PE {rank} {end}"))),
            Some(Failure::Ended { status: 0, .. }) => self.fail(0, EndReason::Ended),
            Some(failure @ Failure::Ended { status, .. }) => {
                self.fail(status, EndReason::Failed(failure.to_string()));
            }
            Some(failure) => {
                let first = match failure {
                    Failure::Pe { rank: first, .. } if first != rank => Some(first),
                    _ => None,
                };
                let known = first.and_then(|first| self.launcher.end(first));
                let status = match known {
                    Some(ProcessEnd::Exited(status)) if status > 0 => status,
                    Some(ProcessEnd::Killed(signal)) => 128_u8.saturating_add(signal),
                    _ => own,
                };
                let is_known = matches!(known, Some(ProcessEnd::Exited(_) | ProcessEnd::Killed(_)));
                self.blamed = match end {
                    ProcessEnd::Gone if first.is_none() => Some(rank),
                    _ => first.filter(|_| !is_known),
                };
                self.fail(status, EndReason::Failed(failure.to_string()));
            }
        }
    }

    /// Handles the end of a PE, without blame, after a signal that ends the job. The status is that
    /// of the signal, unless all PEs have chosen another one.
    fn interrupt(&mut self, signal: i32, own: Option<u8>) {
        let own = own.filter(|&status| !has_ended_by(signal, status));
        let status = own.unwrap_or(status_of(signal));
        match self.outcome.reason {
            None => {
                // The others have as much time as after any signal.
                let ends = self.ends;
                self.fail(status, EndReason::Interrupted { signal });
                self.ends = ends;
            }
            Some(EndReason::Interrupted { .. }) if own.is_none() => self.outcome.status = status,
            Some(_) => {}
        }
    }

    /// Records that the job has failed, unless it has before. The others may end by themselves for
    /// a while.
    pub(super) fn fail(&mut self, status: u8, reason: EndReason) {
        if self.outcome.reason.is_some() {
            return;
        }
        self.outcome.status = status;
        self.outcome.reason = Some(reason);
        let (now, grace) = (Instant::now(), self.launch.grace);
        let ends = [after(now, grace / 2), after(now, grace)];
        self.ends = Some(self.ends.map_or(ends, |before| before.min(ends)));
    }

    /// Ends processes whose time is over.
    pub(super) fn kill_overdue(&mut self) {
        let now = Instant::now();
        if self.timeout.is_some_and(|timeout| timeout <= now) {
            self.time_out();
            self.ends = Some([now, after(now, self.launch.grace / 2)]);
        }
        let Some([ends, killed]) = self.ends else { return };
        if killed <= now {
            self.ends = None;
            if let Some(signal) = self.interrupts.last() {
                self.fail(status_of(signal), EndReason::Interrupted { signal });
                self.ends = None;
            }
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

    /// Handles the job's time-out.
    pub(super) fn time_out(&mut self) {
        self.timeout = None;
        let mut running: Vec<Rank> = self.running.iter().map(|one| one.rank).collect();
        running.sort();
        let limit = self.launch.timeout.unwrap_or_default();
        self.fail(TIMED_OUT, EndReason::TimedOut { limit, running });
    }
}
