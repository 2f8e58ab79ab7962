//! The memory of a group: what its members share, in the job's segment.
//!
//! It is in words: the inboxes of all members, then what each shows, then who they are. It is zero
//! when the group is made.

use std::sync::{
    Arc,
    atomic::Ordering::{Acquire, Relaxed, Release},
};

use consort_fabric::Rank;

use crate::{
    inbox::{
        geometry::{
            FINISHED, Geometry, LINE_WORDS, MOVES, RECENT, RECENT_CALLS, SEQUENCE_BITS,
            SEQUENCE_MASK, recent,
        },
        line::{Line, LineWord},
    },
    launch::failure::Members,
    segment::{part::Words, reservation::Segment},
};

/// The memory of a group: what its members share.
pub(crate) struct GroupMemory {
    pub(crate) geometry: Geometry,
    pes: usize,
    pub(super) words: Words,
}

impl GroupMemory {
    /// That of a group of so many PEs, at an offset of the segment.
    pub(crate) fn new(segment: &Arc<Segment>, at: usize, pes: usize) -> Self {
        let geometry = Geometry::of(pes);
        Self { geometry, pes, words: Words::new(segment, at, geometry.words) }
    }

    /// A word of what a member shows.
    #[inline(always)]
    pub(super) fn member(&self, rank: Rank, word: usize) -> &LineWord {
        &self.words[self.geometry.member(rank, word)]
    }

    /// A line of what a member shows.
    #[inline(always)]
    pub(super) fn member_line(&self, rank: Rank, word: usize) -> &Line {
        let first = self.geometry.member(rank, word);
        Line::of_words(&self.words[first..first + LINE_WORDS])
    }

    /// All members.
    pub(crate) fn members(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..u32::try_from(self.pes).unwrap_or(u32::MAX)).map(Rank)
    }

    /// Says who the members are, by their ranks in the world. Each of them says the same.
    pub(crate) fn introduce(&self, ranks: &[Rank]) {
        let words = &self.words[self.geometry.ranks..];
        // Acquire: who finds the last word finds all others.
        if words[ranks.len() - 1].load(Acquire) == 0 {
            for (word, rank) in words.iter().zip(ranks) {
                word.store(u64::from(rank.0) + 1, Release);
            }
        }
    }

    /// The rank in the world of a member; `None` if nobody has said it, or anything impossible.
    pub(crate) fn in_world(&self, rank: Rank) -> Option<Rank> {
        let word = self.words[self.geometry.ranks + rank.index()].load(Acquire);
        u32::try_from(word.checked_sub(1)?).ok().map(Rank)
    }

    /// The members, as failures name them.
    pub(crate) fn team(&self) -> Members {
        Members::of(self.pes, self.members().filter_map(|member| self.in_world(member)))
    }

    /// Where a member keeps the word of a call, one of its recent ones. On lines of its own: it is
    /// written in every call.
    fn recent(&self, rank: Rank, call: u64) -> &LineWord {
        self.member(rank, RECENT + recent(call))
    }

    /// The words of a member's recent calls, in no order; 0 of those that it has not made.
    pub(crate) fn all_recent(&self, rank: Rank) -> impl Iterator<Item = u64> {
        (0..RECENT_CALLS).map(move |at| self.member(rank, RECENT + at).load(Acquire))
    }

    /// Says that a call of a member has got on: that it waits for something else than before, or
    /// is complete.
    #[inline(always)]
    pub(super) fn move_on(&self, rank: Rank, is_nonblocking: bool) {
        // Each word is counted on by one at a time: the PE, or who polls its nonblocking calls.
        let moves = self.member(rank, MOVES + usize::from(is_nonblocking));
        moves.store(moves.load(Relaxed) + 1, Relaxed);
    }

    /// Grows whenever a call of a member gets on.
    pub(crate) fn moves(&self) -> u64 {
        let words = self.members().flat_map(|rank| [(rank, MOVES), (rank, MOVES + 1)]);
        let moves = words.map(|(rank, word)| self.member(rank, word).load(Relaxed));
        moves.fold(0, u64::wrapping_add)
    }

    /// The word of a call, one of the last of `rank`.
    pub(super) fn word(&self, rank: Rank, call: u64) -> u64 {
        self.recent(rank, call).load(Acquire)
    }

    /// Whether a member has begun a call, which has this word elsewhere.
    pub(crate) fn has_begun(&self, rank: Rank, call: u64, word: u64) -> bool {
        // What stands there is of this call, of a later one, or of one that was long before; of a
        // member that has made no such call it is 0.
        let theirs = self.word(rank, call);
        theirs != 0 && !is_before(theirs, word)
    }

    /// The sequence number after the last call of a member that makes no more.
    pub(super) fn finished(&self, rank: Rank) -> Option<u64> {
        let end = self.member(rank, FINISHED).load(Acquire);
        (end != 0).then_some(end)
    }

    /// Whether a member makes no more calls.
    pub(crate) fn has_finished(&self, rank: Rank) -> bool {
        self.finished(rank).is_some()
    }
}

/// Whether a call's word has a sequence number before that of another, where those are less than
/// half of all numbers apart.
fn is_before(word: u64, other: u64) -> bool {
    word.wrapping_sub(other) & SEQUENCE_MASK >= 1 << (SEQUENCE_BITS - 1)
}
