//! What the PEs of a team share: who they are, their inboxes, and each one's books.
//!
//! The world is a group, and each team that a program makes is another. A PE has a rank in each
//! group that it is a member of; parkers, message buffers and heaps are the PE's, whatever its
//! rank, and are found by its rank in the world.
//!
//! Groups of a job are told apart by their numbers: what one of them keeps in tables of the job, it
//! keeps under its number.

use std::{
    fmt,
    sync::atomic::Ordering::{Acquire, Relaxed},
};

use consort_fabric::{Capabilities, Rank};

use crate::{
    job::{BUFFER_BYTES, Failure, Job, LOANS, SEQUENCE_MASK},
    line::Line,
    sync::AtomicU64,
};

/// The shape of an inbox: first the lines of long messages, call by call, then the cells of short
/// ones, slot by slot.
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
    /// Words of a PE.
    pub(crate) per_pe: usize,
}

/// Words of a line.
pub(crate) const LINE_WORDS: usize = 8;
/// Words of a cell.
pub(crate) const CELL_WORDS: usize = 2;
/// Words of a meeting: one of each PE.
pub(crate) const MEETING_WORDS: usize = 2;
/// Words of a meeting to which each PE brings a word: a cell of each.
pub(crate) const BRINGING_WORDS: usize = 2 * CELL_WORDS;

impl Geometry {
    /// Small teams get room for long messages, large ones a line a peer and a shorter window.
    pub(crate) fn of(pes: usize) -> Self {
        let lines = (4 * pes).max(256);
        let window = if pes <= 64 { 64 } else { 16 };
        let stride = lines + 1;
        let first_cell = stride * window * LINE_WORDS;
        // Regions of different PEs differ in the low 12 bits of their addresses: a PE that stores
        // into a peer's slot and then loads from its own equal one would otherwise be held up,
        // since processors compare just these bits first. (Measured: 2 ns of a near barrier of 80.)
        let apart = 17 * LINE_WORDS;
        let first_meeting = first_cell + lines * window * CELL_WORDS;
        let first_bringing = first_meeting + lines * window * MEETING_WORDS;
        let per_pe = first_bringing + lines * window * BRINGING_WORDS + apart;
        Self { window, lines, stride, first_cell, first_meeting, first_bringing, per_pe }
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

/// What one member shows to the others, on lines of its own.
#[repr(align(128))]
pub(crate) struct Member {
    /// For each call of the window. Word 0: leases given back to this PE; word 1: leases it has
    /// made. Both only grow.
    pub(crate) leases: Box<[Line]>,
    /// The word of each recent call, eight a line; see [`Member::history`].
    history: Box<[Line]>,
    /// The sequence number after the last call, once the PE has finished; else `u64::MAX`.
    pub(crate) finished: AtomicU64,
    /// Counts on whenever a call of this PE waits for something else than before, and whenever a
    /// nonblocking one is complete.
    moves: AtomicU64,
    /// Word 0 of line `r`: credits that member `r` has given to this one.
    pub(crate) credits: Box<[Line]>,
    /// What others lend to this PE: a line for each call of the window, lender and loan.
    pub(crate) loans: Box<[Line]>,
}

impl Member {
    fn new(geometry: &Geometry, members: usize) -> Self {
        Self {
            leases: Line::array(geometry.window),
            history: Line::array(geometry.window.div_ceil(8)),
            finished: AtomicU64::new(u64::MAX),
            moves: AtomicU64::new(0),
            credits: Line::array(members),
            loans: Line::array(geometry.window * members * LOANS as usize),
        }
    }

    /// Says that a call of this PE has got on.
    #[inline(always)]
    pub(crate) fn move_on(&self) {
        // Of two threads that count at once one may be lost, and the count is another still.
        self.moves.store(self.moves.load(Relaxed) + 1, Relaxed);
    }

    /// Where the word of a call is kept, by its number modulo the window. On lines of this PE
    /// alone: it is written in every call.
    #[inline(always)]
    pub(crate) fn history(&self, turn: usize) -> &AtomicU64 {
        &Line::words(&self.history)[turn]
    }
}

/// What the PEs of a team share.
pub struct Group {
    number: u64,
    /// The members' ranks in the world, in the order of their ranks here.
    ranks: Box<[Rank]>,
    pub(crate) members: Box<[Member]>,
    pub(crate) geometry: Geometry,
    /// The inboxes of all members, one after the other.
    inboxes: Box<[Line]>,
}

impl Group {
    /// The group of these PEs, given by their ranks in the world.
    pub(crate) fn new(number: u64, ranks: Box<[Rank]>) -> Self {
        let geometry = Geometry::of(ranks.len());
        Self {
            number,
            members: ranks.iter().map(|_| Member::new(&geometry, ranks.len())).collect(),
            inboxes: Line::array(ranks.len() * geometry.per_pe / LINE_WORDS),
            ranks,
            geometry,
        }
    }

    /// Whether it is that of all PEs.
    pub fn is_world(&self) -> bool {
        self.number == 0
    }

    /// What tells it from the other groups of its job; the world has 0.
    pub(crate) fn number(&self) -> u64 {
        self.number
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

    /// The words of all inboxes.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        Line::words(&self.inboxes)
    }

    /// Its PEs by their ranks in the world, and none for the world, as [`Failure`] has them.
    pub fn team(&self) -> Vec<Rank> {
        if self.is_world() { Vec::new() } else { self.ranks.to_vec() }
    }

    /// The sequence number of a call, one of the last of `rank`.
    pub(crate) fn sequence(&self, rank: Rank, call: u64) -> u64 {
        self.word(rank, call) & SEQUENCE_MASK
    }

    /// The word of a call, one of the last of `rank`.
    pub(crate) fn word(&self, rank: Rank, call: u64) -> u64 {
        self.members[rank.index()].history(self.geometry.turn(call)).load(Acquire)
    }

    /// Whether every member but `rank` has finished: nobody is left to send it anything.
    pub(crate) fn is_alone(&self, rank: Rank) -> bool {
        self.members.len() > 1 && self.others(rank).all(|(peer, _)| self.has_finished(peer))
    }

    /// Tells all peers of `rank` that it has left another quarter of the window of calls.
    pub(crate) fn give_credit(&self, job: &Job, rank: Rank, quarter: u64) {
        for (peer, member) in self.others(rank) {
            // Release: pairs with the acquire in `await_credits`.
            member.credits[rank.index()].publish_at(0, quarter + 1);
            job.wake(self.in_world(peer));
        }
    }

    /// Whether a member makes no more calls.
    pub(crate) fn has_finished(&self, rank: Rank) -> bool {
        self.members[rank.index()].finished.load(Acquire) != u64::MAX
    }

    /// Grows whenever a call of a member gets on.
    pub(crate) fn moves(&self) -> u64 {
        self.members.iter().map(|member| member.moves.load(Relaxed)).sum()
    }

    /// Fails the job since `rank` waits for something that nobody is left to send.
    #[cold]
    pub(crate) fn abandon(&self, job: &Job, rank: Rank) {
        let peer = Rank(if rank.0 == 0 { 1 } else { 0 });
        let call = "a wait for a message or a word".to_owned();
        self.miss(job, peer, rank, call);
    }

    /// Fails the job since `peer` has finished while `rank` waits for it in `call`.
    fn miss(&self, job: &Job, peer: Rank, rank: Rank, call: String) {
        let (rank, waiting, team) = (self.in_world(peer), self.in_world(rank), self.team());
        job.poison(Failure::Finished { rank, waiting, call, team });
    }

    /// Looks for the first of the last calls of `rank`, of which it has begun `calls` in all, that
    /// a peer has made otherwise, and for a peer that has finished without the last one; poisons
    /// the job if there is any.
    #[cold]
    pub(crate) fn check_peers(&self, job: &Job, rank: Rank, calls: u64) {
        let me = &self.members[rank.index()];
        for call in calls.saturating_sub(self.window())..calls {
            let turn = self.geometry.turn(call);
            let word = me.history(turn).load(Relaxed);
            for (peer, member) in self.others(rank) {
                let theirs = member.history(turn).load(Acquire);
                if theirs & SEQUENCE_MASK == word & SEQUENCE_MASK && theirs != word {
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
        for (peer, member) in self.others(rank) {
            if member.finished.load(Acquire) <= word & SEQUENCE_MASK {
                return self.miss(job, peer, rank, job.name_of(word));
            }
        }
    }

    /// Looks for a peer that has finished after more calls than `rank`, whose sequence number is
    /// `end`; poisons the job if there is one.
    #[cold]
    pub(crate) fn check_finished(&self, job: &Job, rank: Rank, end: u64) {
        for (peer, member) in self.others(rank) {
            let finished = member.finished.load(Acquire);
            if finished != u64::MAX && finished > end {
                let words =
                    (0..self.geometry.window).map(|turn| member.history(turn).load(Acquire));
                let last = words.max_by_key(|word| word & SEQUENCE_MASK).unwrap_or(0);
                return self.miss(job, rank, peer, job.name_of(last));
            }
        }
    }

    /// All members but `rank`.
    fn others(&self, rank: Rank) -> impl Iterator<Item = (Rank, &Member)> {
        (0..).map(Rank).zip(&self.members).filter(move |(peer, _)| *peer != rank)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("ranks", &self.ranks).finish_non_exhaustive()
    }
}
