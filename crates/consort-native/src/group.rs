//! What the PEs of a team share: who they are, their inboxes, and what each shows to the others.
//!
//! The world is a group, and each team that a program makes is another. A PE has a rank in each
//! group that it is a member of; parkers, message buffers and heaps are the PE's, whatever its
//! rank, and are found by its rank in the world.
//!
//! A group's memory is a part of the job's segment, in words: the inboxes of all members, then what
//! each shows. It is zero when the group is made. Each member has a [`Group`] of its own that says
//! where it is; the memory is the system's again when the last of them is gone.
//!
//! Groups of a job are told apart by their numbers: what the directory keeps for one of them, it
//! keeps under its number.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Relaxed, Release},
    },
};

use consort_fabric::{Capabilities, Rank};

use crate::{
    directory::{NoGroup, Place},
    job::{BUFFER_BYTES, Failure, Job, LOANS, SEQUENCE_BITS, SEQUENCE_MASK},
    line::{Line, LineWord},
    segment::Words,
};

/// The shape of a group's memory: inboxes, and what members show.
///
/// An inbox has first the lines of long messages, call by call, then the cells of short ones, slot
/// by slot.
///
/// A cell is two words: the payload of a message of 8 bytes, or a signal beside the first, and the
/// sequence word. Four successive calls' cells of one slot share a line, so that what a PE sends in
/// a row of calls travels together.
///
/// Last come the words of meetings, slot by slot: those of both PEs, in the inbox of the lower one,
/// four successive calls on a line. Whoever gets the line sees that the other is at the call before
/// its own, and leaves that call and enters the next before it loses the line again. (Measured, two
/// PEs far apart, in transfers: 1.06 a barrier; with the words on lines of their own 1.25 to 1.6.)
/// Meetings to which each brings a word have a cell of each, two calls on a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// Calls that may be under way at once: PEs differ by at most this.
    pub(crate) window: usize,
    /// Lines of one call.
    pub(crate) lines: usize,
    /// Lines from one call's to the next's: one more, so that equal slots of successive calls fall
    /// into different cache sets.
    pub(crate) stride: usize,
    /// The first word of cells.
    pub(crate) first_cell: usize,
    /// The first word of meetings.
    pub(crate) first_meeting: usize,
    /// The first word of meetings to which each PE brings a word.
    pub(crate) first_bringing: usize,
    /// Words of a PE's inbox.
    pub(crate) per_pe: usize,
    /// The first word of what members show to the others.
    first_member: usize,
    /// Words from one member's to the next's.
    per_member: usize,
    /// In what a member shows, the first words of credits, of leases and of loans.
    credits: usize,
    leases: usize,
    loans: usize,
    /// Words in all.
    words: usize,
}

/// Words of a line.
pub(crate) const LINE_WORDS: usize = 8;
/// Words of a cell.
pub(crate) const CELL_WORDS: usize = 2;
/// Words of a meeting: one of each PE.
pub(crate) const MEETING_WORDS: usize = 2;
/// Words of a meeting to which each PE brings a word: a cell of each.
pub(crate) const BRINGING_WORDS: usize = 2 * CELL_WORDS;

/// In what a member shows, on lines of its own: the word that says where it has finished, the two
/// that count the waits of its blocking and of its nonblocking calls, and those of recent calls.
const FINISHED: usize = 0;
const MOVES: usize = 1;
const RECENT: usize = 2 * LINE_WORDS;

/// How many calls of a member are compared with those of others: two windows. After calls that did
/// not match nobody gets more than a window and a quarter ahead, so all still have them.
const RECENT_CALLS: usize = 128;

/// The place of a call among the recent ones.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
const fn recent(call: u64) -> usize {
    call as usize & (RECENT_CALLS - 1)
}

impl Geometry {
    /// Small teams get room for long messages, large ones a line a peer and a shorter window.
    pub(crate) fn of(pes: usize) -> Self {
        let lines = (4 * pes).max(256);
        let window = if pes <= 64 { 64 } else { 16 };
        debug_assert!(2 * window <= RECENT_CALLS, "recent calls are two windows");
        let stride = lines + 1;
        let first_cell = stride * window * LINE_WORDS;
        // Regions of different PEs differ in the low 12 bits of their addresses: a PE that stores
        // into a peer's slot and then loads from its own equal one would otherwise be held up,
        // since processors compare just these bits first. (Measured: 2 ns of a near barrier of 80.)
        let apart = 17 * LINE_WORDS;
        let first_meeting = first_cell + lines * window * CELL_WORDS;
        let first_bringing = first_meeting + lines * window * MEETING_WORDS;
        let per_pe = first_bringing + lines * window * BRINGING_WORDS + apart;
        let first_member = pes * per_pe;
        let credits = RECENT + RECENT_CALLS;
        let leases = credits + pes * LINE_WORDS;
        let loans = leases + window * LINE_WORDS;
        let per_member = loans + window * pes * LOANS as usize * LINE_WORDS + apart;
        let words = first_member + pes * per_member;
        Self {
            window,
            lines,
            stride,
            first_cell,
            first_meeting,
            first_bringing,
            per_pe,
            first_member,
            per_member,
            credits,
            leases,
            loans,
            words,
        }
    }

    /// A word of what a member shows.
    #[inline(always)]
    fn member(&self, rank: Rank, word: usize) -> usize {
        self.first_member + rank.index() * self.per_member + word
    }

    /// Bytes of all that a group has.
    pub(crate) fn bytes(&self) -> usize {
        self.words * size_of::<u64>()
    }

    /// Hands over the words of the recent calls of all members of a group that lies there.
    pub(crate) fn recent_words(&self, job: &Job, at: usize, mut hand_over: impl FnMut(u64)) {
        let words = job.segment.words(at, self.words);
        for member in words[self.first_member..].chunks_exact(self.per_member) {
            for word in &member[RECENT..RECENT + RECENT_CALLS] {
                hand_over(word.load(Relaxed));
            }
        }
    }

    /// The place of a call in the window.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
    pub(crate) fn turn(&self, call: u64) -> usize {
        call as usize & (self.window - 1)
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities {
            inbox_lines: u32::try_from(self.lines).unwrap_or(u32::MAX),
            scratch_bytes: self.lines * size_of::<Line>(),
            buffer_bytes: BUFFER_BYTES,
            lending: true,
            buffered: true,
        }
    }
}

/// What the PEs of a team share, as one of them holds it.
pub struct Group {
    job: Arc<Job>,
    number: u64,
    /// The members' ranks in the world, in the order of their ranks here.
    ranks: Box<[Rank]>,
    pub(crate) geometry: Geometry,
    /// The first word of this member's recent calls.
    own_recent: usize,
    words: Words,
}

impl Group {
    /// The hold of member `rank` on a group at this place, of PEs given by their ranks in the
    /// world.
    pub(crate) fn new(job: &Arc<Job>, place: Place, ranks: Box<[Rank]>, rank: Rank) -> Self {
        let geometry = Geometry::of(ranks.len());
        let words = job.segment.words(place.at, geometry.words);
        let own_recent = geometry.member(rank, RECENT);
        Self { job: Arc::clone(job), number: place.number, ranks, geometry, own_recent, words }
    }

    /// The hold of member `rank` on the group of this colour that is team number `made` of this
    /// one's, of PEs given by their ranks in the world.
    ///
    /// # Errors
    /// When there is no memory for another group.
    pub(crate) fn join(
        &self,
        made: u64,
        color: u32,
        ranks: Box<[Rank]>,
        rank: Rank,
    ) -> Result<Self, NoGroup> {
        let bytes = Geometry::of(ranks.len()).bytes();
        let directory = self.job.directory().ok_or(NoGroup)?;
        let place = directory.join((self.number, made), color, ranks.len(), bytes)?;
        drop(directory);
        Ok(Self::new(&self.job, place, ranks, rank))
    }

    /// Whether it is that of all PEs.
    pub fn is_world(&self) -> bool {
        self.number == 0
    }

    /// What tells it from the other groups of its job; the world has 0.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// How many members there are.
    #[inline(always)]
    pub(crate) fn size(&self) -> usize {
        self.ranks.len()
    }

    /// The members' ranks in the world, in the order of their ranks here.
    pub fn ranks(&self) -> &[Rank] {
        &self.ranks
    }

    /// The rank in the world of a member.
    #[inline(always)]
    pub(crate) fn in_world(&self, rank: Rank) -> Rank {
        self.ranks[rank.index()]
    }

    /// Calls that may be under way at once.
    pub fn window(&self) -> u64 {
        self.geometry.window as u64
    }

    /// What the fabric can do for calls of this team.
    pub fn capabilities(&self) -> Capabilities {
        self.geometry.capabilities()
    }

    /// The words of all inboxes, and what follows.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[LineWord] {
        &self.words
    }

    /// A word of what a member shows.
    #[inline(always)]
    fn member(&self, rank: Rank, word: usize) -> &LineWord {
        &self.words[self.geometry.member(rank, word)]
    }

    /// A line of what a member shows.
    #[inline(always)]
    fn member_line(&self, rank: Rank, word: usize) -> &Line {
        let first = self.geometry.member(rank, word);
        Line::of_words(&self.words[first..first + LINE_WORDS])
    }

    /// Where a member keeps the word of a call, one of its recent ones. On lines of its own: it is
    /// written in every call.
    fn recent(&self, rank: Rank, call: u64) -> &LineWord {
        self.member(rank, RECENT + recent(call))
    }

    /// The same of this member.
    #[inline(always)]
    pub(crate) fn own_recent(&self, call: u64) -> &LineWord {
        &self.words[self.own_recent + recent(call)]
    }

    /// The words of a member's recent calls, in no order; 0 of those that it has not made.
    fn all_recent(&self, rank: Rank) -> impl Iterator<Item = u64> {
        (0..RECENT_CALLS).map(move |at| self.member(rank, RECENT + at).load(Acquire))
    }

    /// The name of the call of this member whose messages have this word.
    pub(crate) fn name_of_own(&self, rank: Rank, word: u64) -> String {
        let mut recent = self.all_recent(rank);
        let own = recent.find(|own| (own ^ word) & SEQUENCE_MASK == 0);
        self.job.name_of(own.unwrap_or(0))
    }

    /// Of a call of the window of a member: how much that it has lent is given back, in word 0, and
    /// how much it has lent, in word 1. Both only grow.
    #[inline(always)]
    pub(crate) fn leases(&self, rank: Rank, turn: usize) -> &Line {
        self.member_line(rank, self.geometry.leases + turn * LINE_WORDS)
    }

    /// Word 0: the credits that member `from` has given to member `to`.
    #[inline(always)]
    pub(crate) fn credits(&self, to: Rank, from: Rank) -> &Line {
        self.member_line(to, self.geometry.credits + from.index() * LINE_WORDS)
    }

    /// Where `lender` shows `borrower` what it lends in a call of the window.
    #[inline(always)]
    pub(crate) fn loan(&self, borrower: Rank, lender: Rank, turn: usize, loan: u32) -> &Line {
        assert!(loan < LOANS, "a PE lends at most {LOANS} buffers to a peer in a call");
        let of_lender = (turn * self.size() + lender.index()) * LOANS as usize;
        let line = of_lender + loan as usize;
        self.member_line(borrower, self.geometry.loans + line * LINE_WORDS)
    }

    /// Says that a call of a member has got on: that it waits for something else than before, or
    /// is complete.
    #[inline(always)]
    pub(crate) fn move_on(&self, rank: Rank, is_nonblocking: bool) {
        // Each word is counted on by one at a time: the PE, or who polls its nonblocking calls.
        let moves = self.member(rank, MOVES + usize::from(is_nonblocking));
        moves.store(moves.load(Relaxed) + 1, Relaxed);
    }

    /// Grows whenever a call of a member gets on.
    pub(crate) fn moves(&self) -> u64 {
        let words = self.members().flat_map(|rank| [(rank, MOVES), (rank, MOVES + 1)]);
        words.map(|(rank, word)| self.member(rank, word).load(Relaxed)).sum()
    }

    /// All members.
    fn members(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..u32::try_from(self.size()).unwrap_or(u32::MAX)).map(Rank)
    }

    /// All members but `rank`.
    fn others(&self, rank: Rank) -> impl Iterator<Item = Rank> + use<> {
        self.members().filter(move |peer| *peer != rank)
    }

    /// Its PEs by their ranks in the world, and none for the world, as [`Failure`] has them.
    pub fn team(&self) -> Vec<Rank> {
        if self.is_world() { Vec::new() } else { self.ranks.to_vec() }
    }

    /// The word of a call, one of the last of `rank`.
    pub(crate) fn word(&self, rank: Rank, call: u64) -> u64 {
        self.recent(rank, call).load(Acquire)
    }

    /// Whether a member has begun a call, which has this word elsewhere.
    pub(crate) fn has_begun(&self, rank: Rank, call: u64, word: u64) -> bool {
        // What stands there is of this call, of a later one, or of one that was long before; of a
        // member that has made no such call it is 0.
        let theirs = self.word(rank, call);
        theirs != 0 && !is_before(theirs, word)
    }

    /// Says that a member makes no more calls; the sequence number after the last one is `end`.
    pub(crate) fn finish(&self, rank: Rank, end: u64) {
        self.member(rank, FINISHED).store(end, Release); // pairs with the acquire in `finished`
    }

    /// The sequence number after the last call of a member that makes no more.
    fn finished(&self, rank: Rank) -> Option<u64> {
        let end = self.member(rank, FINISHED).load(Acquire);
        (end != 0).then_some(end)
    }

    /// Whether a member makes no more calls.
    pub(crate) fn has_finished(&self, rank: Rank) -> bool {
        self.finished(rank).is_some()
    }

    /// Whether every member but `rank` has finished: nobody is left to send it anything.
    pub(crate) fn is_alone(&self, rank: Rank) -> bool {
        self.size() > 1 && self.others(rank).all(|peer| self.has_finished(peer))
    }

    /// Tells all peers of `rank` that it has left another quarter of the window of calls.
    pub(crate) fn give_credit(&self, rank: Rank, quarter: u64) {
        for peer in self.others(rank) {
            // Release: pairs with the acquire in `await_credits`.
            self.credits(peer, rank).publish_at(0, quarter + 1);
            self.job.wake(self.in_world(peer));
        }
    }

    /// Fails the job since `rank` waits for something that nobody is left to send.
    #[cold]
    pub(crate) fn abandon(&self, rank: Rank) {
        let peer = Rank(if rank.0 == 0 { 1 } else { 0 });
        self.miss(peer, rank, "a wait for a message or a word".to_owned());
    }

    /// Fails the job since `peer` has finished while `rank` waits for it in `call`.
    fn miss(&self, peer: Rank, rank: Rank, call: String) {
        let (rank, waiting, team) = (self.in_world(peer), self.in_world(rank), self.team());
        self.job.poison(Failure::Finished { rank, waiting, call, team });
    }

    /// Looks for the first of the last calls of `rank`, of which it has begun `calls` in all, that
    /// a peer has made otherwise, and for a peer that has finished without the last one; poisons
    /// the job if there is any. The sequence number after the last call is `end`.
    #[cold]
    pub(crate) fn check_peers(&self, rank: Rank, calls: u64, end: u64) {
        let job = &self.job;
        for call in calls.saturating_sub(RECENT_CALLS as u64)..calls {
            let word = self.word(rank, call);
            for peer in self.others(rank) {
                let theirs = self.word(peer, call);
                if theirs != 0 && (theirs ^ word) & SEQUENCE_MASK == 0 && theirs != word {
                    let mut both = [(rank, word), (peer, theirs)]
                        .map(|(rank, word)| (self.in_world(rank), job.name_of(word)));
                    both.sort_by_key(|(rank, _)| *rank);
                    let ([one, other], team) = (both, self.team());
                    return job.poison(Failure::Mismatched { call, one, other, team });
                }
            }
        }
        let Some(last) = calls.checked_sub(1) else { return };
        let word = self.word(rank, last);
        let last_steps = end.wrapping_sub(word) & SEQUENCE_MASK;
        for peer in self.others(rank) {
            if self.finished(peer).is_some_and(|finished| finished + last_steps <= end) {
                return self.miss(peer, rank, job.name_of(word));
            }
        }
    }

    /// Looks for a peer that has finished after more calls than `rank`, whose sequence number is
    /// `end`; poisons the job if there is one.
    #[cold]
    pub(crate) fn check_finished(&self, rank: Rank, end: u64) {
        for peer in self.others(rank) {
            let Some(finished) = self.finished(peer).filter(|&finished| finished > end) else {
                continue;
            };
            let last = self
                .all_recent(peer)
                .filter(|&word| word != 0)
                .min_by_key(|word| finished.wrapping_sub(*word) & SEQUENCE_MASK);
            return self.miss(rank, peer, self.job.name_of(last.unwrap_or(0)));
        }
    }
}

/// Whether a call's word has a sequence number before that of another, where those are less than
/// half of all numbers apart.
fn is_before(word: u64, other: u64) -> bool {
    word.wrapping_sub(other) & SEQUENCE_MASK >= 1 << (SEQUENCE_BITS - 1)
}

impl Drop for Group {
    fn drop(&mut self) {
        // The world's memory is that of the job. In one that has failed it does not matter that the
        // memory of a team is never used again.
        if !self.is_world()
            && let Some(directory) = self.job.directory()
        {
            directory.leave(self.number);
        }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("ranks", &self.ranks).finish_non_exhaustive()
    }
}
