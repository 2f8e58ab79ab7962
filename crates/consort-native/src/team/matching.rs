//! Checks that the members of a group make the same calls. A member checks after it has waited for
//! a long time, and when it finishes.

use std::time::Duration;

use consort_fabric::Rank;

use super::group::Group;
use crate::{
    inbox::geometry::{RECENT_CALLS, SEQUENCE_MASK},
    launch::failure::{Failure, Members},
    progress::deadlock::describe,
    state::heartbeat::Awaited,
};

impl Group {
    /// Records that this member makes no more calls. `end` is the sequence number after its last
    /// call.
    pub(crate) fn finish(&self, end: u64) {
        self.finish_region(self.job.region(), end);
    }

    /// As [`Group::finish`], in the region of this number.
    pub(crate) fn finish_region(&self, number: u64, end: u64) {
        self.memory.finish(self.rank, number, end);
    }

    /// Returns whether all other near members have begun this member's call `call`.
    pub(crate) fn have_begun(&self, call: u64) -> bool {
        let word = self.word(call);
        let is_far = |peer| self.job.is_far(self.in_world(peer));
        self.others().all(|peer| is_far(peer) || self.memory.has_begun(peer, call, word))
    }

    /// Returns whether every other member has finished, so that none can send anything.
    pub(crate) fn is_alone(&self) -> bool {
        let region = self.job.region();
        self.size() > 1 && self.others().all(|peer| self.memory.has_finished(peer, region))
    }

    /// Fails the job because this member waits for something that no member can send any more: for
    /// `awaited` in `call`, or outside of calls.
    #[cold]
    pub(crate) fn abandon(&self, call: Option<u64>, awaited: Awaited) {
        if let Some(call) = call.filter(|&call| self.have_begun(call)) {
            let name = self.call_of(self.rank, self.word(call));
            let awaited = describe::awaited(&self.memory, self.rank, awaited);
            let (waiting, call) = (self.in_world(self.rank), format!("{name}{}", self.team()));
            return self.job.poison(&Failure::Starved { waiting, call, awaited });
        }
        let peer = Rank(if self.rank.0 == 0 { 1 } else { 0 });
        self.miss(peer, self.rank, self.name_of_wait(call));
    }

    /// Fails the job because `peer` has finished while `rank` waits for it in `call`.
    fn miss(&self, peer: Rank, rank: Rank, call: String) {
        let (rank, waiting, team) = (self.in_world(peer), self.in_world(rank), self.team());
        self.job.poison(&Failure::Finished { rank, waiting, call, team });
    }

    /// Compares this member's recent calls with its peers', and looks for a peer that has finished
    /// without making the last call. Fails the job at the first mismatch. This member has begun
    /// `calls` calls, and `end` is the sequence number after the last of them.
    #[cold]
    pub(crate) fn check_peers(&self, calls: u64, end: u64) {
        let (job, rank) = (&self.job, self.rank);
        self.request_published();
        for call in calls.saturating_sub(RECENT_CALLS as u64)..calls {
            let word = self.word(call);
            for peer in self.others() {
                let theirs = self.memory.word(peer, call);
                if theirs != 0 && (theirs ^ word) & SEQUENCE_MASK == 0 && theirs != word {
                    let mut both = [(rank, word), (peer, theirs)]
                        .map(|(rank, word)| (self.in_world(rank), self.call_of(rank, word)));
                    if both[1].0 < both[0].0 {
                        both.swap(0, 1);
                    }
                    let ([one, other], team) = (both, self.team());
                    return job.poison(&Failure::Mismatched { call, one, other, team });
                }
            }
        }
        let Some(last) = calls.checked_sub(1) else { return };
        let word = self.word(last);
        let last_steps = end.wrapping_sub(word) & SEQUENCE_MASK;
        for peer in self.others() {
            // Read this first, because the peer may begin this call, finish and leave between two
            // of the reads here. If it has left, everything that it did before is visible.
            let has_left = self.has_left(peer);
            let finished = self.memory.finished(peer, job.region());
            let is_short = finished.is_some_and(|finished| finished + last_steps <= end);
            let never_joined = || finished.is_none() && !self.memory.has_begun(peer, last, word);
            if is_short || has_left && never_joined() {
                return self.miss(peer, rank, self.call_of(rank, word));
            }
        }
    }

    /// Returns whether a near peer makes no more calls at all. Each member joins a group by itself,
    /// so a peer that has not joined this group records its end only in the world. For far PEs,
    /// `far::census` finds this out.
    fn has_left(&self, peer: Rank) -> bool {
        let job = &self.job;
        let world = || job.world_memory();
        !job.has_far() && world().has_finished(self.in_world(peer), job.region())
    }

    /// Looks for a peer that has finished after more calls than this member has made, and fails the
    /// job if there is one. `end` is this member's sequence number.
    #[cold]
    pub(crate) fn check_finished(&self, end: u64) {
        for peer in self.others() {
            let finished = self.memory.finished(peer, self.job.region());
            let Some(finished) = finished.filter(|&finished| finished > end) else { continue };
            let last = self
                .memory
                .all_recent(peer)
                .filter(|&word| word != 0)
                .min_by_key(|word| finished.wrapping_sub(*word) & SEQUENCE_MASK);
            return self.miss(self.rank, peer, self.call_of(peer, last.unwrap_or(0)));
        }
    }

    /// Returns the name of this member's call `call`, or of a wait outside of calls.
    fn name_of_wait(&self, call: Option<u64>) -> String {
        let name = call.map(|call| self.call_of(self.rank, self.word(call)));
        name.unwrap_or_else(|| "a wait for a message or a word".to_owned())
    }

    /// Returns the name of this member's call `call`, and the members in `absent`, for a failure.
    fn names(&self, call: Option<u64>, absent: &[Rank]) -> (String, Members) {
        let mut name = self.name_of_wait(call);
        let job = &self.job.config().name;
        if !job.is_empty() {
            name += &format!(" of job `{job}`");
        }
        let absent = absent.iter().map(|&member| self.in_world(member));
        (name, Members::of(absent.len(), absent))
    }

    /// Fails the job if this member has waited for as long as the job's limit allows, because of
    /// members that no thread has run for at least as long. In `call`, it may wait because of any
    /// member that has not begun the call. Outside of calls, it counts as waiting for all other
    /// members together.
    #[cold]
    pub(crate) fn check_present(&self, call: Option<u64>, waited: Duration) {
        let Some(limit) = self.job.config().joining.filter(|&limit| waited >= limit) else {
            return;
        };
        let is_missing = |&peer: &Rank| {
            let is_absent = self.job.absent_for(self.in_world(peer)) >= Some(limit);
            let begun = |call| self.memory.has_begun(peer, call, self.word(call));
            is_absent && !call.is_some_and(begun)
        };
        let missing: Vec<Rank> = self.others().filter(is_missing).collect();
        let enough = if call.is_some() { 1 } else { self.others().count().max(1) };
        if missing.len() >= enough {
            let (call, missing) = self.names(call, &missing);
            let waiting = self.in_world(self.rank);
            self.job.poison(&Failure::Missing { missing, waiting, call, limit });
        }
    }

    /// Fails the job because this member has waited in `call` for longer than `limit`.
    #[cold]
    pub(crate) fn time_out(&self, call: Option<u64>, limit: Duration) {
        let has_not_begun = |&peer: &Rank| {
            call.is_some_and(|call| !self.memory.has_begun(peer, call, self.word(call)))
        };
        let late: Vec<Rank> = self.others().filter(has_not_begun).collect();
        let (call, late) = self.names(call, &late);
        self.job.poison(&Failure::TimedOut { rank: self.in_world(self.rank), call, limit, late });
    }
}
