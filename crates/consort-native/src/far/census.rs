//! Detects PEs that wait forever, in a job in which some PEs share no memory: a *census* collects
//! the reports of all processes.
//!
//! The lowest-numbered process in which a PE waits takes the census. To find out whether it is the
//! lowest, a process asks each lower process, in turn, for a report. It continues with the next
//! process if no PE waits there, or if no reply arrives, because then all PEs of that process are
//! computing. If a PE waits there, the process asks again after a while.
//!
//! The process that takes the census requests reports from all others at once, and judges them. It
//! repeats this, after a pause, until three rounds agree. The reports of a round are made after all
//! reports of the previous round have arrived. So if two rounds agree on a fact, it was true at one
//! moment in between. The third round shows whether all PEs have polled since then. A reply that
//! arrives after its round has ended is dropped. The longer the census has lasted, the longer a
//! round may take, so that a process that is always slow is eventually counted. Cost: nothing while
//! no PE waits for long. Otherwise one packet to each process and one back, at intervals of 20 ms
//! to 500 ms.

use std::{
    mem,
    time::{Duration, Instant},
};

use consort_fabric::Rank;

use super::{
    link::Far,
    packet::{Field, Request},
    report::Report,
};
use crate::{
    launch::{failure::Failure, job::Job},
    progress::deadlock::{
        describe::{Description, WaitText},
        snapshot::Snapshot,
        verdict::Suspects,
    },
};

/// The minimum and the maximum time to wait for a reply. A process in which some PE waits, or all
/// have finished, replies immediately unless the machine is busy.
const REPLIES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(5)];
/// The minimum and the maximum of the pauses before the first round and between two rounds.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];
/// Within these limits, each time is the duration of the census so far divided by this number.
const PART: u32 = 8;

/// A request to which a process has not replied.
#[derive(Debug)]
struct ReportRequest {
    process: u32,
    id: u64,
    /// Whether the round of this request has not ended.
    is_new: bool,
}

/// A PE's part in finding PEs that wait forever.
#[derive(Debug, Default)]
pub(crate) struct Census {
    /// The process that is asked whether it takes the census.
    candidate: u32,
    /// When the PE first took part in this wait.
    since: Option<Instant>,
    /// When this round began, and when the next one begins.
    begun: Option<Instant>,
    next: Option<Instant>,
    requests: Vec<ReportRequest>,
    /// The reports of this round.
    reports: Vec<Report>,
    suspects: Suspects,
}

impl Census {
    /// Forgets the last wait.
    pub(crate) fn begin_wait(&mut self, job: &Job) {
        let last = mem::take(self);
        last.requests.iter().for_each(|request| job.with_far(|far| far.forget_request(request.id)));
    }

    /// Takes the next step. Returns the failure if PEs wait forever.
    pub(crate) fn look(&mut self, job: &Job) -> Option<Failure> {
        let far = job.far()?;
        let now = Instant::now();
        let [shortest, longest] = PAUSES;
        let since = *self.since.get_or_insert(now);
        if now < self.next.unwrap_or(since + shortest) {
            return None;
        }
        self.collect(far);
        let Some(begun) = self.begun else {
            self.begin_round(job, far, now);
            return None;
        };
        let are_all_there = !self.requests.iter().any(|request| request.is_new);
        if !are_all_there && now < begun + self.reply_limit(now - since, far) {
            return None;
        }
        self.begun = None;
        self.requests.iter_mut().for_each(|request| request.is_new = false);
        let reports = mem::take(&mut self.reports);
        self.next = Some(now + ((now - since) / PART).clamp(shortest, longest));
        if self.candidate == far.own() {
            return self.judge(job, far, reports);
        }
        if !reports.iter().any(Report::has_waiting) {
            self.candidate += 1;
            self.next = Some(now);
        }
        None
    }

    /// Returns how long to wait for this round's replies. The wait for a slow candidate is short,
    /// because this process may as well take the census itself.
    fn reply_limit(&self, lasted: Duration, far: &Far) -> Duration {
        let [shortest, longest] = REPLIES;
        if self.candidate == far.own() {
            (lasted / PART).clamp(shortest, longest)
        } else {
            shortest
        }
    }

    /// Begins a round: sends a request to the candidate, or to all others if the candidate is this
    /// process. Skips processes that have not replied to the previous request.
    fn begin_round(&mut self, job: &Job, far: &Far, now: Instant) {
        self.begun = Some(now);
        let all = if self.candidate == far.own() {
            0..far.count()
        } else {
            self.candidate..self.candidate + 1
        };
        for process in all.filter(|&process| process != far.own()) {
            if !self.requests.iter().any(|request| request.process == process) {
                let id = far.link().request(process, Request::Report {}, |_| ());
                self.requests.push(ReportRequest { process, id, is_new: true });
            }
        }
        job.flush_now();
    }

    /// Takes the replies that have arrived. Drops those of earlier rounds.
    fn collect(&mut self, far: &Far) {
        let reports = &mut self.reports;
        self.requests.retain(|request| {
            let Some(reply) = far.take_reply(request.id) else { return true };
            if request.is_new {
                reports.extend(Report::read(&mut &reply[..]));
            }
            false
        });
    }

    fn judge(&mut self, job: &Job, far: &Far, mut reports: Vec<Report>) -> Option<Failure> {
        reports.push(job.report(&mut far.link())?);
        let now = Report::merged(&reports, job.config().pes)?;
        // A finished PE never begins the call. That is certain at once, whatever is in flight. Long
        // data for a finished PE may be in flight forever.
        if let Some((waiting, rank)) = now.abandoned() {
            let WaitText { call, team, .. } = describe(job, far, &now, waiting)?;
            return Some(Failure::Finished { rank, waiting, call, team });
        }
        let needed: Vec<Rank> = now.depends_on(&now.stuck()).into_iter().flatten().collect();
        if !Report::are_quiet(&reports, &needed) {
            return None;
        }
        self.suspects.judge(&now)?.failure(|pe| describe(job, far, &now, pe))
    }
}

/// Describes the wait of a PE.
fn describe(job: &Job, far: &Far, now: &Snapshot, pe: Rank) -> Option<WaitText> {
    let description = if far.is_own(pe) || now.is_for_word(pe) {
        Description::of(job, pe)
    } else {
        let reply = job.request(far, pe, Request::Describe { pe }, |_| ())?;
        let (place, awaited) = Field::read(&mut &reply[..]).unwrap_or_default();
        Some(Description { place, awaited })
    };
    Some(description.unwrap_or_default().complete(job, now, pe))
}

#[cfg(all(test, target_os = "linux", not(any(loom, miri, consort_portable))))]
mod tests {
    use super::*;
    use crate::far::coordinator::tests::{serve, three};

    /// Otherwise a process would be in the reports of the next round twice, once with its old
    /// state.
    #[test]
    fn reply_that_comes_between_two_rounds_is_dropped() {
        let jobs = three();
        let mut census = Census::default();
        let mut until = |has_begun: bool, other: Option<&Job>| {
            while census.begun.is_some() != has_begun {
                serve(&jobs[0]);
                other.into_iter().for_each(serve);
                assert!(census.look(&jobs[0]).is_none(), "no PE waits");
            }
            let asked = census.requests.iter().map(|request| request.process).collect::<Vec<_>>();
            (asked, census.reports.len())
        };
        assert_eq!(until(true, None), (vec![1, 2], 0));
        assert_eq!(until(false, Some(&jobs[2])), (vec![1], 0));
        serve(&jobs[1]);
        serve(&jobs[0]);
        assert_eq!(until(true, None), (vec![1, 2], 0));
    }

    #[test]
    fn process_that_always_replies_late_is_counted() {
        const LATE: Duration = Duration::from_millis(80);
        const SOON: Duration = Duration::from_secs(10);
        let jobs = three();
        let mut census = Census::default();
        let mut asked: Option<(u64, Instant)> = None;
        let begin = Instant::now();
        loop {
            let is_slow = |request: &ReportRequest| request.process == 1 && request.is_new;
            let is_awaited = census.requests.iter().any(is_slow);
            [&jobs[0], &jobs[2]].into_iter().for_each(|job| serve(job));
            assert!(census.look(&jobs[0]).is_none(), "no PE waits");
            let slow = census
                .requests
                .iter()
                .find(|request| request.process == 1)
                .map(|request| request.id);
            if is_awaited && slow.is_none() {
                return; // the slow process has been counted
            }
            let same = asked.filter(|(id, _)| Some(*id) == slow);
            asked = same.or_else(|| slow.map(|id| (id, Instant::now())));
            if asked.is_some_and(|(_, since)| since.elapsed() > LATE) {
                serve(&jobs[1]);
            }
            assert!(begin.elapsed() < SOON, "it is never awaited");
        }
    }
}
