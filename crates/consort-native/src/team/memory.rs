//! The memory of a group, in the job's segment.
//!
//! It consists of words: the inboxes of all members, then each member's published words, then the
//! members' ranks. It is zero when the group is made.

use std::sync::{
    Arc,
    atomic::Ordering::{Acquire, Relaxed, Release},
};

use consort_fabric::Rank;

use crate::{
    inbox::{
        geometry::{
            FINISHED, FINISHED_REGION, Geometry, LINE_WORDS, MOVES, RECENT, RECENT_CALLS,
            SEQUENCE_BITS, SEQUENCE_MASK, recent,
        },
        line::{Line, LineWord},
    },
    launch::failure::Members,
    segment::{reservation::Segment, slice::SegmentWords},
};

pub(crate) struct GroupMemory {
    pub(crate) geometry: Geometry,
    pes: usize,
    pub(super) words: SegmentWords,
    /// The words of all inboxes. Messages cannot reach any other words.
    pub(super) inboxes: SegmentWords,
}

impl GroupMemory {
    /// Returns the memory of a group of `pes` members, at offset `at` of the segment.
    pub(crate) fn new(segment: &Arc<Segment>, at: usize, pes: usize, geometry: Geometry) -> Self {
        let words = |count| SegmentWords::new(segment, at, count);
        Self { geometry, pes, words: words(geometry.words), inboxes: words(geometry.first_member) }
    }

    /// Returns an empty group memory: any access panics.
    pub(crate) fn none(segment: &Arc<Segment>, pes: usize, geometry: Geometry) -> Self {
        let words = || SegmentWords::new(segment, 0, 0);
        Self { geometry, pes, words: words(), inboxes: words() }
    }

    /// Returns `words` words from index `at` on, if they exist.
    pub(crate) fn part(&self, at: usize, words: usize) -> Option<&[LineWord]> {
        self.words.get(at..at.checked_add(words)?)
    }

    /// Returns whether there is a member with this rank.
    pub(crate) fn has(&self, rank: Rank) -> bool {
        rank.index() < self.pes
    }

    /// Returns a word that a member publishes.
    #[inline(always)]
    pub(crate) fn member(&self, rank: Rank, word: usize) -> &LineWord {
        &self.words[self.geometry.member(rank, word)]
    }

    /// Returns a line that a member publishes.
    #[inline(always)]
    pub(super) fn member_line(&self, rank: Rank, word: usize) -> &Line {
        let first = self.geometry.member(rank, word);
        Line::of_words(&self.words[first..first + LINE_WORDS])
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..u32::try_from(self.pes).unwrap_or(u32::MAX)).map(Rank)
    }

    /// Records the members' ranks in the world. Each member records the same.
    pub(crate) fn introduce(&self, ranks: &[Rank]) {
        let words = &self.words[self.geometry.ranks..];
        // Acquire: a member that sees the last word also sees all others.
        if words[ranks.len() - 1].load(Acquire) == 0 {
            for (word, rank) in words.iter().zip(ranks) {
                word.store(u64::from(rank.0) + 1, Release);
            }
        }
    }

    /// Returns a member's rank in the world, or `None` if it is not recorded or is not a valid
    /// rank.
    pub(crate) fn in_world(&self, rank: Rank) -> Option<Rank> {
        let word = self.words[self.geometry.ranks + rank.index()].load(Acquire);
        u32::try_from(word.checked_sub(1)?).ok().map(Rank)
    }

    /// Returns the members in the form that `Failure` uses.
    pub(crate) fn team(&self) -> Members {
        Members::of(self.pes, self.members().filter_map(|member| self.in_world(member)))
    }

    /// Returns the word of a call in a member's log of recent calls. The log is on separate lines,
    /// because every call writes to it.
    fn recent(&self, rank: Rank, call: u64) -> &LineWord {
        self.member(rank, RECENT + recent(call))
    }

    /// Returns the words in a member's log of recent calls, in no particular order. A word is 0 if
    /// there was no call.
    pub(crate) fn all_recent(&self, rank: Rank) -> impl Iterator<Item = u64> {
        (0..RECENT_CALLS).map(move |at| self.member(rank, RECENT + at).load(Acquire))
    }

    /// Returns the word of a member's last call, or 0 if it has made none.
    pub(crate) fn last_call(&self, rank: Rank) -> u64 {
        let later = |one: u64, other| match one {
            0 => other,
            _ if other == 0 || is_before(other, one) => one,
            _ => other,
        };
        self.all_recent(rank).fold(0, later)
    }

    /// Returns the index of the call with `word` in a member's log. `None` if the call is not in
    /// the log, or if the member's next call will replace it.
    pub(crate) fn recent_index(&self, rank: Rank, word: u64) -> Option<usize> {
        let index = self.all_recent(rank).position(|recent| recent == word)?;
        let before = self.all_recent(rank).nth((index + RECENT_CALLS - 1) % RECENT_CALLS)?;
        (word != 0 && (before == 0 || !is_before(word, before))).then_some(index)
    }

    /// Counts a move of a member's calls: a call has begun a new wait or has completed.
    #[inline(always)]
    pub(super) fn move_on(&self, rank: Rank, is_nonblocking: bool) {
        // Each word has one writer at a time: the PE, or the thread that polls the PE's nonblocking
        // calls.
        let moves = self.member(rank, MOVES + usize::from(is_nonblocking));
        moves.store(moves.load(Relaxed) + 1, Relaxed);
    }

    pub(crate) fn moves_of(&self, rank: Rank) -> u64 {
        let moves = [MOVES, MOVES + 1].map(|word| self.member(rank, word).load(Relaxed));
        moves[0].wrapping_add(moves[1])
    }

    /// Returns the number of moves of all members' calls.
    pub(crate) fn moves(&self) -> u64 {
        self.members().map(|rank| self.moves_of(rank)).fold(0, u64::wrapping_add)
    }

    /// Returns the word of a call in the log of `rank`.
    pub(super) fn word(&self, rank: Rank, call: u64) -> u64 {
        self.recent(rank, call).load(Acquire)
    }

    /// Returns whether a member has begun a call. `word` is the call's word on another member.
    pub(crate) fn has_begun(&self, rank: Rank, call: u64, word: u64) -> bool {
        // The log's entry belongs to this call, to a later one, or to one that is a whole log
        // older. It is 0 if the member has made no such call.
        let theirs = self.word(rank, call);
        theirs != 0 && !is_before(theirs, word)
    }

    /// Records that a member makes no more calls in a region. `end` is the sequence number after
    /// its last call.
    pub(super) fn finish(&self, rank: Rank, region: u64, end: u64) {
        self.member(rank, FINISHED).store(end, Relaxed);
        // Release: pairs with the acquire in `finished`.
        self.member(rank, FINISHED_REGION).store(region, Release);
    }

    /// Returns the sequence number after the last call of a member, if the member makes no more
    /// calls in this region.
    pub(super) fn finished(&self, rank: Rank, region: u64) -> Option<u64> {
        let is_over = self.member(rank, FINISHED_REGION).load(Acquire) == region;
        is_over.then(|| self.member(rank, FINISHED).load(Relaxed))
    }

    /// Returns whether a member makes no more calls in this region.
    pub(crate) fn has_finished(&self, rank: Rank, region: u64) -> bool {
        self.finished(rank, region).is_some()
    }
}

/// Returns whether the sequence number in `word` is before that in `other`. The two must differ by
/// less than half of all numbers.
pub(crate) fn is_before(word: u64, other: u64) -> bool {
    word.wrapping_sub(other) & SEQUENCE_MASK >= 1 << (SEQUENCE_BITS - 1)
}

#[cfg(test)]
mod tests {
    use consort_fabric::Nodes;

    use super::*;
    use crate::segment::origin::Origin;

    /// Tests a log that has wrapped around. The entry that the next call replaces is not found,
    /// because its slot may already belong to that call.
    #[test]
    fn call_is_found_until_its_slot_may_be_reused() {
        let geometry = Geometry::of(2, Nodes::One);
        let segment = Segment::reserve(geometry.bytes(), Origin::Private, "a test");
        let segment = segment.expect("memory of a group");
        let memory = GroupMemory::new(&Arc::new(segment), 0, 2, geometry);
        let (rank, calls) = (Rank(1), RECENT_CALLS as u64);
        let word = |call: u64| 7 << SEQUENCE_BITS | (call + 1);
        assert_eq!(memory.recent_index(rank, word(0)), None);
        for call in 0..2 * calls + 3 {
            memory.recent(rank, call).store(word(call), Relaxed);
            let found = |back: u64| memory.recent_index(rank, word(call.checked_sub(back)?));
            assert_eq!(found(0), Some(recent(call)));
            assert_eq!(found(calls - 2).is_some(), call >= calls - 2);
            assert_eq!(found(calls - 1), None);
            assert_eq!(found(calls), None);
            assert_eq!(memory.last_call(rank), word(call));
        }
    }
}
