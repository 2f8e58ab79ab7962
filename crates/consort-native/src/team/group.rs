//! A group: the state that the PEs of a team share, as one member sees it.
//!
//! The world is a group, and so is each team that a program makes. A PE has a rank in each group
//! that it is a member of. Its parker, its message buffer and its heap do not depend on the group;
//! they are found by its rank in the world.
//!
//! Each group of a job has a number, which is part of its keys in the directory. Its memory is
//! freed when the last member has left.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use consort_fabric::{Capabilities, Rank};

use super::memory::GroupMemory;
use crate::{
    directory::groups::{GroupPlace, NoGroup},
    inbox::{
        geometry::{
            EXPOSURES, Geometry, LINE_WORDS, RECENT, SEQUENCE_MASK, exposure_count_words, recent,
        },
        line::{Line, LineWord},
    },
    launch::{failure::Members, job::Job},
};

/// The state that the PEs of a team share, as one member sees it.
pub struct Group {
    pub(super) job: Arc<Job>,
    pub(super) number: u64,
    pub(super) rank: Rank,
    /// The members' ranks in the world, in the order of their ranks here.
    pub(super) ranks: Box<[Rank]>,
    pub(crate) memory: GroupMemory,
    /// The index of the first word of this member's log of recent calls.
    pub(super) own_recent: usize,
}

impl Group {
    /// The group at `place` for its member `rank`. `ranks` are all members' ranks in the world.
    pub(crate) fn new(job: &Arc<Job>, place: GroupPlace, ranks: Box<[Rank]>, rank: Rank) -> Self {
        let memory = GroupMemory::new(&job.segment, place.at, ranks.len());
        Self::with_memory(job, place.number, ranks, rank, memory)
    }

    /// A group without memory, for a member that has left its group.
    pub(crate) fn none(job: &Arc<Job>, ranks: Box<[Rank]>, rank: Rank) -> Self {
        let memory = GroupMemory::none(&job.segment, ranks.len());
        Self::with_memory(job, u64::MAX, ranks, rank, memory)
    }

    fn with_memory(
        job: &Arc<Job>,
        number: u64,
        ranks: Box<[Rank]>,
        rank: Rank,
        memory: GroupMemory,
    ) -> Self {
        let own_recent = memory.geometry.member(rank, RECENT);
        Self { job: Arc::clone(job), number, rank, ranks, memory, own_recent }
    }

    /// The group of colour `color` in team formation `made` of this group, for its member `rank`.
    /// `ranks` are all members' ranks in the world.
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
        let group = Self::new(&self.job, place, ranks, rank);
        group.memory.introduce(&group.ranks);
        Ok(group)
    }

    /// Whether it is the group of all PEs.
    pub fn is_world(&self) -> bool {
        self.number == 0
    }

    /// The group's number in the job; 0 for the world.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// This member's rank.
    #[inline(always)]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// How many members there are.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.ranks.len()
    }

    /// The members' ranks in the world, in the order of their ranks here.
    pub fn ranks(&self) -> &[Rank] {
        &self.ranks
    }

    /// A member's rank in the world.
    #[inline(always)]
    pub(crate) fn in_world(&self, rank: Rank) -> Rank {
        self.ranks[rank.index()]
    }

    /// The window: how many calls may be pending at once.
    pub fn window(&self) -> u64 {
        self.memory.geometry.window as u64
    }

    /// The fabric's capabilities for calls of this team.
    pub fn capabilities(&self) -> Capabilities {
        self.memory.geometry.capabilities()
    }

    /// The words of all inboxes. A message to a wrong channel or rank cannot reach anything else.
    #[inline(always)]
    pub(crate) fn inboxes(&self) -> &[LineWord] {
        &self.memory.inboxes
    }

    /// The word of a call in this member's log of recent calls.
    #[inline(always)]
    pub(crate) fn own_recent(&self, call: u64) -> &LineWord {
        &self.memory.words[self.own_recent + recent(call)]
    }

    /// The name of this member's call whose message words have the sequence number of `word`.
    pub(crate) fn name_of_own(&self, word: u64) -> String {
        let mut recent = self.memory.all_recent(self.rank);
        let own = recent.find(|own| (own ^ word) & SEQUENCE_MASK == 0);
        self.job.name_of(own.unwrap_or(0))
    }

    /// The counts of a member's call at a window position: in word 0 the detaches of its exposures,
    /// in word 1 its exposures. Both only grow. Then come the call's word, and its marks.
    #[inline(always)]
    pub(crate) fn exposure_counts(&self, rank: Rank, position: usize) -> &[LineWord] {
        let count = exposure_count_words(self.size());
        let first = self.memory.geometry.exposure_counts + position * count;
        let first = self.memory.geometry.member(rank, first);
        &self.memory.words[first..first + count]
    }

    /// Marks that this member exposes a buffer to `peer` in the call with `word`.
    ///
    /// # Panics
    /// When it already has, under the same number. The peer could attach the address of one buffer
    /// with the length of the other.
    pub(crate) fn mark_exposure(&self, peer: Rank, position: usize, exposure: u32, word: u64) {
        let counts = self.exposure_counts(self.rank, position);
        let (of, marks) = (&counts[2], &counts[3..]);
        if of.load(Relaxed) != word {
            marks.iter().for_each(|mark| mark.store(0, Relaxed));
            of.store(word, Relaxed);
        }
        let index = peer.index() * EXPOSURES as usize + exposure as usize;
        let (mark, bit) = (&marks[index / 64], 1 << (index % 64));
        let marked = mark.load(Relaxed);
        assert!(marked & bit == 0, "a PE exposes one buffer to a peer under each number in a call");
        mark.store(marked | bit, Relaxed);
    }

    /// Word 0: the credits that member `from` has given to member `to`.
    #[inline(always)]
    pub(crate) fn credits(&self, to: Rank, from: Rank) -> &Line {
        self.memory.member_line(to, self.memory.geometry.credits + from.index() * LINE_WORDS)
    }

    /// The line through which `owner` exposes a buffer to `peer`, in the call at a window position.
    #[inline(always)]
    pub(crate) fn exposure(
        &self,
        peer: Rank,
        owner: Rank,
        position: usize,
        exposure: u32,
    ) -> &Line {
        assert!(
            exposure < EXPOSURES,
            "a PE exposes at most {EXPOSURES} buffers to a peer in a call"
        );
        let of_owner = (position * self.size() + owner.index()) * EXPOSURES as usize;
        let line = of_owner + exposure as usize;
        self.memory.member_line(peer, self.memory.geometry.exposures + line * LINE_WORDS)
    }

    /// Counts a move of this member's calls: one begins a new wait, or is complete.
    #[inline(always)]
    pub(crate) fn move_on(&self, is_nonblocking: bool) {
        self.memory.move_on(self.rank, is_nonblocking);
    }

    /// Removes the marks of all exposures in this member's call at a window position.
    #[inline(always)]
    pub(crate) fn unmark_exposures(&self, position: usize) {
        self.exposure_counts(self.rank, position)[2].store(0, Relaxed);
    }

    /// Gives all peers the credit for a quarter: this member has left another quarter of the
    /// window.
    pub(crate) fn give_credit(&self, quarter: u64) {
        for peer in self.others() {
            // Release: pairs with the acquire in `await_credits`.
            self.credits(peer, self.rank).publish_at(0, quarter + 1);
            self.job.wake(self.in_world(peer));
        }
    }

    /// All members but this one.
    pub(crate) fn others(&self) -> impl Iterator<Item = Rank> + use<> {
        let rank = self.rank;
        self.memory.members().filter(move |peer| *peer != rank)
    }

    /// The members, as `Failure` names them; none for the world.
    pub fn team(&self) -> Members {
        if self.is_world() { Members::default() } else { self.memory.team() }
    }

    /// The word of one of this member's recent calls.
    pub(crate) fn word(&self, call: u64) -> u64 {
        self.memory.word(self.rank, call)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The world's memory is part of the job's. Once the job has failed, the memory of a team
        // may stay allocated.
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
