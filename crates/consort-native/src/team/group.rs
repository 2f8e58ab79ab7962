//! What the PEs of a team share, as one of them holds it: who they are, their inboxes, and what
//! each shows to the others.
//!
//! The world is a group, and each team that a program makes is another. A PE has a rank in each
//! group that it is a member of; where it sleeps, its message buffer and its heap are the PE's,
//! whatever its rank, and are found by its rank in the world.
//!
//! A number identifies each group of a job: what the directory keeps for one of them, it
//! keeps under its number. A group's memory is the system's again when the last member has left.

use std::{fmt, sync::Arc};

use consort_fabric::{Capabilities, Rank};

use super::memory::GroupMemory;
use crate::{
    directory::groups::{GroupPlace, NoGroup},
    inbox::{
        geometry::{EXPOSURES, Geometry, LINE_WORDS, RECENT, SEQUENCE_MASK, recent},
        line::{Line, LineWord},
    },
    launch::{failure::Members, job::Job},
};

/// What the PEs of a team share, as one of them holds it.
pub struct Group {
    pub(super) job: Arc<Job>,
    pub(super) number: u64,
    pub(super) rank: Rank,
    /// The members' ranks in the world, in the order of their ranks here.
    pub(super) ranks: Box<[Rank]>,
    pub(crate) memory: GroupMemory,
    /// The first word of this member's recent calls.
    pub(super) own_recent: usize,
}

impl Group {
    /// The hold of member `rank` on a group at this place, of PEs given by their ranks in the
    /// world.
    pub(crate) fn new(job: &Arc<Job>, place: GroupPlace, ranks: Box<[Rank]>, rank: Rank) -> Self {
        let memory = GroupMemory::new(&job.segment, place.at, ranks.len());
        let own_recent = memory.geometry.member(rank, RECENT);
        Self { job: Arc::clone(job), number: place.number, rank, ranks, memory, own_recent }
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
        let group = Self::new(&self.job, place, ranks, rank);
        group.memory.introduce(&group.ranks);
        Ok(group)
    }

    /// Whether it is that of all PEs.
    pub fn is_world(&self) -> bool {
        self.number == 0
    }

    /// Its number among the groups of its job; the world has 0.
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

    /// The rank in the world of a member.
    #[inline(always)]
    pub(crate) fn in_world(&self, rank: Rank) -> Rank {
        self.ranks[rank.index()]
    }

    /// Calls that may be under way at once.
    pub fn window(&self) -> u64 {
        self.memory.geometry.window as u64
    }

    /// What the fabric can do for calls of this team.
    pub fn capabilities(&self) -> Capabilities {
        self.memory.geometry.capabilities()
    }

    /// The words of all inboxes, and what follows.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[LineWord] {
        &self.memory.words
    }

    /// Where this member keeps the word of a call.
    #[inline(always)]
    pub(crate) fn own_recent(&self, call: u64) -> &LineWord {
        &self.memory.words[self.own_recent + recent(call)]
    }

    /// The name of the call of this member whose messages have this word.
    pub(crate) fn name_of_own(&self, word: u64) -> String {
        let mut recent = self.memory.all_recent(self.rank);
        let own = recent.find(|own| (own ^ word) & SEQUENCE_MASK == 0);
        self.job.name_of(own.unwrap_or(0))
    }

    /// Of a call of the window of a member: how much that it has exposed is detached, in word 0,
    /// and how much it has exposed, in word 1. Both only grow.
    #[inline(always)]
    pub(crate) fn exposure_counts(&self, rank: Rank, position: usize) -> &Line {
        self.memory.member_line(rank, self.memory.geometry.exposure_counts + position * LINE_WORDS)
    }

    /// Word 0: the credits that member `from` has given to member `to`.
    #[inline(always)]
    pub(crate) fn credits(&self, to: Rank, from: Rank) -> &Line {
        self.memory.member_line(to, self.memory.geometry.credits + from.index() * LINE_WORDS)
    }

    /// Where `owner` shows `peer` what it exposes in a call of the window.
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

    /// Says that a call of this member has got on: that it waits for something else than before, or
    /// is complete.
    #[inline(always)]
    pub(crate) fn move_on(&self, is_nonblocking: bool) {
        self.memory.move_on(self.rank, is_nonblocking);
    }

    /// Signals to all peers that this member has left another quarter of the window of calls.
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

    /// Its PEs, and none for the world, as `Failure` has them.
    pub fn team(&self) -> Members {
        if self.is_world() { Members::default() } else { self.memory.team() }
    }

    /// The word of a call, one of the last of this member.
    pub(crate) fn word(&self, call: u64) -> u64 {
        self.memory.word(self.rank, call)
    }
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
