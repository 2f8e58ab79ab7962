//! The presence of PEs: whether a thread runs a PE, and if not, for how long no thread has run it.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use consort_fabric::Rank;

use super::job::Job;
use crate::state::header::{NEVER_PRESENT, PRESENT};

impl Job {
    /// Records that a thread runs a PE, by its rank in the world.
    pub fn arrive(&self, pe: Rank) {
        let absent_since = &self.states[pe.index()].absent_since;
        if absent_since.load(Relaxed) == NEVER_PRESENT {
            self.header.last_first_arrival_ns.fetch_max(self.now_ns(), Relaxed);
        }
        absent_since.store(PRESENT, Relaxed);
    }

    /// Records that no thread runs a PE any more, if threads join the job.
    pub fn depart(&self, pe: Rank) {
        if self.config().joining.is_some() {
            self.states[pe.index()].absent_since.store(self.now_ns(), Relaxed);
        }
    }

    /// Returns for how long no thread has run a PE, or `None` if a thread runs it. If no thread has
    /// ever run it, the time counts from the latest moment at which some PE arrived for the first
    /// time, because starting many PEs takes long.
    pub(crate) fn absent_for(&self, pe: Rank) -> Option<Duration> {
        let since = match self.states[pe.index()].absent_since.load(Relaxed) {
            PRESENT => return None,
            NEVER_PRESENT => self.header.last_first_arrival_ns.load(Relaxed),
            since => since,
        };
        Some(Duration::from_nanos(self.now_ns().saturating_sub(since)))
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread, time::Instant};

    use super::*;
    use crate::launch::config::Config;

    #[test]
    fn pe_is_not_late_while_others_first_arrive() {
        let limit = Duration::from_millis(20);
        let config = Config { pes: 3, here: 3, joining: Some(limit), ..Config::of_two() };
        let job: Arc<Job> = Job::new(config).expect("some memory");
        let late = || job.absent_for(Rank(2));
        thread::sleep(limit);
        assert!(late() >= Some(limit), "nobody has come");
        let begun = Instant::now();
        job.arrive(Rank(0));
        assert!(late().is_some_and(|late| late <= begun.elapsed()), "another one has come");
        job.depart(Rank(0));
        thread::sleep(limit);
        job.arrive(Rank(0));
        assert!(late() >= Some(limit), "one has only come back");
        job.arrive(Rank(2));
        assert_eq!(late(), None);
    }
}
