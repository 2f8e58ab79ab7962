//! Checks that the members of a group make the same calls. A member checks when it has waited for
//! long, and when it finishes.

use std::sync::atomic::Ordering::Release;

use consort_fabric::Rank;

use super::group::Group;
use crate::{
    inbox::geometry::{FINISHED, RECENT_CALLS, SEQUENCE_MASK},
    launch::failure::Failure,
};

impl Group {
    /// Declares that this member makes no more calls; `end` is the sequence number after its last
    /// one.
    pub(crate) fn finish(&self, end: u64) {
        // Release: pairs with the acquire in `finished`.
        self.memory.member(self.rank, FINISHED).store(end, Release);
    }

    /// Whether every other member has finished, so that none is left to send anything.
    pub(crate) fn is_alone(&self) -> bool {
        self.size() > 1 && self.others().all(|peer| self.memory.has_finished(peer))
    }

    /// Fails the job: this member waits for something that no member is left to send.
    #[cold]
    pub(crate) fn abandon(&self) {
        let peer = Rank(if self.rank.0 == 0 { 1 } else { 0 });
        self.miss(peer, self.rank, "a wait for a message or a word".to_owned());
    }

    /// Fails the job: `peer` has finished while `rank` waits for it in `call`.
    fn miss(&self, peer: Rank, rank: Rank, call: String) {
        let (rank, waiting, team) = (self.in_world(peer), self.in_world(rank), self.team());
        self.job.poison(&Failure::Finished { rank, waiting, call, team });
    }

    /// Compares this member's recent calls with its peers', and looks for a peer that has finished
    /// without the last call. Fails the job for the first mismatch. This member has begun `calls`
    /// calls; `end` is the sequence number after the last one.
    #[cold]
    pub(crate) fn check_peers(&self, calls: u64, end: u64) {
        let (job, rank) = (&self.job, self.rank);
        for call in calls.saturating_sub(RECENT_CALLS as u64)..calls {
            let word = self.word(call);
            for peer in self.others() {
                let theirs = self.memory.word(peer, call);
                if theirs != 0 && (theirs ^ word) & SEQUENCE_MASK == 0 && theirs != word {
                    let mut both = [(rank, word), (peer, theirs)]
                        .map(|(rank, word)| (self.in_world(rank), job.name_of(word)));
                    both.sort_by_key(|(rank, _)| *rank);
                    let ([one, other], team) = (both, self.team());
                    return job.poison(&Failure::Mismatched { call, one, other, team });
                }
            }
        }
        let Some(last) = calls.checked_sub(1) else { return };
        let word = self.word(last);
        let last_steps = end.wrapping_sub(word) & SEQUENCE_MASK;
        for peer in self.others() {
            if self.memory.finished(peer).is_some_and(|finished| finished + last_steps <= end) {
                return self.miss(peer, rank, job.name_of(word));
            }
        }
    }

    /// Looks for a peer that has finished after more calls than this member made, and fails the job
    /// if there is one. `end` is this member's sequence number.
    #[cold]
    pub(crate) fn check_finished(&self, end: u64) {
        for peer in self.others() {
            let Some(finished) = self.memory.finished(peer).filter(|&finished| finished > end)
            else {
                continue;
            };
            let last = self
                .memory
                .all_recent(peer)
                .filter(|&word| word != 0)
                .min_by_key(|word| finished.wrapping_sub(*word) & SEQUENCE_MASK);
            return self.miss(self.rank, peer, self.job.name_of(last.unwrap_or(0)));
        }
    }
}
