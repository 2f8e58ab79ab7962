//! A group: the state that the PEs of a team share, as one member sees it.
//!
//! The world is a group, and so is each team that a program makes. A PE has a rank in each group of
//! which it is a member. Its parker, message buffer and heap do not depend on the group: its rank
//! in the world locates them.
//!
//! Each group of a job has a number, which is part of the group's keys in the directory. The
//! group's memory is freed when the last member has left.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use consort_fabric::{Credit, Nodes, Rank};

use super::{memory::GroupMemory, message::seen_by};
use crate::{
    directory::{
        group_error::GroupError,
        groups::{GroupKey, GroupPlace},
    },
    inbox::{
        geometry::{
            EXPOSURES, FIRST_WIDE_SLOT, Geometry, LINE_WORDS, PAIR_TURNS, PAIR_WORDS, RECENT,
            RECENT_CALLS, SEQUENCE_MASK, SHORT_SLOT_WORDS, recent,
        },
        line::{Line, LineWord},
    },
    launch::{failure::Members, job::Job, sites::RecentSites},
    segment::slice::SegmentWords,
};

/// The words that a member writes for its exposures in calls at one window position. In one era,
/// the member exposes at most one buffer to a peer under each number. Each call begins an era, and
/// so does the end of a wait for detaches.
struct ExposureWords<'g> {
    /// The number of exposures.
    count: &'g LineWord,
    /// The word of the latest call that exposed anything.
    call: &'g LineWord,
    era: &'g LineWord,
    /// The era of the latest exposure, by peer and number.
    eras: &'g [LineWord],
}

impl ExposureWords<'_> {
    #[inline(always)]
    fn begin_era(&self) {
        self.era.store(self.era.load(Relaxed) + 1, Relaxed);
    }
}

/// The slots for the pairwise operations of this member and a peer in their blocking calls.
pub(crate) struct Pair {
    /// The indices of the sequence words in the first short slots of this member and of the peer.
    mine: usize,
    others: usize,
    turn: AtomicUsize,
}

impl Pair {
    fn new(geometry: &Geometry, rank: Rank, peer: Rank) -> Self {
        let (low, high) = (rank.min(peer), rank.max(peer));
        let lines = low.index() * geometry.per_pe + geometry.first_pair + high.index() * PAIR_WORDS;
        let of_low = lines + 1;
        let of_high = of_low + PAIR_TURNS * SHORT_SLOT_WORDS;
        let (mine, others) = if rank < peer { (of_low, of_high) } else { (of_high, of_low) };
        Self { mine, others, turn: AtomicUsize::new(0) }
    }

    /// Returns the indices of the sequence words of this member and of the peer in their next
    /// operation, and the number of earlier operations. The peer counts these too. `is_wide` means
    /// that the data is longer than a word.
    #[inline(always)]
    pub(crate) fn next(&self, is_wide: bool) -> (usize, usize, usize) {
        let turn = self.turn.load(Relaxed);
        self.turn.store(turn.wrapping_add(1), Relaxed); // no other thread makes blocking calls
        let slot = turn % PAIR_TURNS;
        let after_first =
            if is_wide { FIRST_WIDE_SLOT + slot * LINE_WORDS } else { slot * SHORT_SLOT_WORDS };
        (self.mine + after_first, self.others + after_first, turn)
    }
}

/// The state that the PEs of a team share, as one member sees it.
pub struct Group {
    pub(super) job: Arc<Job>,
    pub(super) number: u64,
    pub(super) rank: Rank,
    /// The members' ranks in the world, in the order of their ranks in the group.
    pub(super) ranks: Box<[Rank]>,
    pub(crate) memory: GroupMemory,
    pairs: Box<[Pair]>,
    /// This member's log of recent calls.
    own_recent: SegmentWords,
    /// The places in the program where this member made its recent calls.
    pub(crate) own_sites: Arc<RecentSites>,
}

impl Group {
    /// Returns the group at `place` for its member `rank`. `ranks` are the ranks of all members in
    /// the world.
    ///
    /// # Errors
    /// When this process cannot map the group's memory.
    pub(crate) fn new(
        job: &Arc<Job>,
        place: GroupPlace,
        ranks: Box<[Rank]>,
        rank: Rank,
    ) -> Result<Self, GroupError> {
        let (segment, at) = job.find_group(place.at)?;
        let memory = GroupMemory::new(&segment, at, ranks.len(), job.geometry(ranks.len()));
        let own_sites = job.sites.join(place.number, rank);
        let first = at + memory.geometry.member(rank, RECENT) * size_of::<LineWord>();
        let own_recent = SegmentWords::new(&segment, first, RECENT_CALLS);
        let (job, number) = (Arc::clone(job), place.number);
        let members = (0..u32::try_from(ranks.len()).unwrap_or(u32::MAX)).map(Rank);
        let pairs = members.map(|peer| Pair::new(&memory.geometry, rank, peer)).collect();
        Ok(Self { job, number, rank, ranks, memory, pairs, own_recent, own_sites })
    }

    /// Returns a group without memory, for a member that has left its group.
    pub(crate) fn none(job: &Arc<Job>, ranks: Box<[Rank]>, rank: Rank) -> Self {
        let memory = GroupMemory::none(&job.segment, ranks.len(), job.geometry(ranks.len()));
        let (own_recent, own_sites) = (SegmentWords::new(&job.segment, 0, 0), Arc::default());
        let (job, number, pairs) = (Arc::clone(job), u64::MAX, Box::default());
        Self { job, number, rank, ranks, memory, pairs, own_recent, own_sites }
    }

    /// Joins the group that is being formed, as its member `rank`. `ranks` are the ranks of all
    /// members in the world.
    ///
    /// # Errors
    /// When there is no memory for another group.
    pub(crate) fn join(
        job: &Arc<Job>,
        forming: GroupKey,
        ranks: Box<[Rank]>,
        rank: Rank,
    ) -> Result<Self, GroupError> {
        let bytes = job.geometry(ranks.len()).bytes();
        let (place, begun) = job.join_group(forming, &ranks, bytes)?;
        let group =
            Self::new(job, place, ranks, rank).inspect_err(|_| job.leave_group(place.number))?;
        group.memory.introduce(&group.ranks);
        job.deliver_early(group.number, begun);
        Ok(group)
    }

    /// Returns whether this is the group of all PEs.
    pub fn is_world(&self) -> bool {
        self.number == 0
    }

    /// Returns the group's number in the job (0 for the world).
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns this member's rank.
    #[inline(always)]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the number of members.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the members' ranks in the world, in the order of their ranks in the group.
    pub fn ranks(&self) -> &[Rank] {
        &self.ranks
    }

    #[inline(always)]
    pub(crate) fn in_world(&self, rank: Rank) -> Rank {
        *self.ranks.get(rank.index()).unwrap_or_else(|| self.refuse(rank))
    }

    /// Panics because the program, or an algorithm, names a PE that is not in this group.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse(&self, pe: Rank) -> ! {
        let pes = self.size();
        panic!("PE {pe} is not in the team: its {pes} PEs have ranks 0 to {}", pes - 1)
    }

    /// Returns the window: the number of calls that may be pending at once.
    pub fn window(&self) -> u64 {
        self.memory.geometry.window as u64
    }

    /// Returns how the members are placed on processes that share no memory.
    pub fn nodes(&self) -> Nodes {
        self.job.nodes_of(&self.ranks)
    }

    #[inline(always)]
    pub(crate) fn word_at(&self, index: usize) -> Option<&LineWord> {
        self.memory.words.get(index)
    }

    /// Returns the words of all inboxes. A message to a wrong channel or rank cannot reach anything
    /// else.
    #[inline(always)]
    pub(crate) fn inboxes(&self) -> &[LineWord] {
        &self.memory.inboxes
    }

    #[inline(always)]
    pub(crate) fn pair(&self, peer: Rank) -> &Pair {
        self.pairs.get(peer.index()).unwrap_or_else(|| self.refuse(peer))
    }

    /// Returns the word of a call in this member's log of recent calls.
    #[inline(always)]
    pub(crate) fn own_recent(&self, call: u64) -> &LineWord {
        &self.own_recent[recent(call)]
    }

    /// Returns the call of this member whose messages have the sequence number in `word`.
    pub(crate) fn name_of_own(&self, word: u64) -> String {
        let mut recent = self.memory.all_recent(self.rank);
        let own = recent.find(|own| (own ^ word) & SEQUENCE_MASK == 0);
        self.call_of(self.rank, own.unwrap_or(0))
    }

    /// Returns the call of a member whose word in the log is `word`: its name, and the place in the
    /// program that made it.
    pub(super) fn call_of(&self, member: Rank, word: u64) -> String {
        let in_world = |rank: Rank| self.ranks.get(rank.index()).copied();
        let name = seen_by(member, self.job.name_of(word), in_world);
        name + &self.job.place_of(self.number, &self.memory, member, word)
    }

    /// Returns the index of the word that counts the detaches of a member's exposures in its calls
    /// at a window position. The count only grows. The words of [`Self::exposed`] are on the next
    /// line.
    #[inline(always)]
    pub(crate) fn detached_at(&self, rank: Rank, position: usize) -> usize {
        let geometry = &self.memory.geometry;
        geometry.member(rank, geometry.exposure_counts + position * geometry.per_count)
    }

    /// Returns the words that only this member writes, for its calls at a window position.
    #[inline(always)]
    fn exposing(&self, position: usize) -> ExposureWords<'_> {
        let first = self.detached_at(self.rank, position) + LINE_WORDS;
        let words = &self.memory.words[first..first + self.memory.geometry.per_count - LINE_WORDS];
        let [count, call, era, eras @ ..] = words else { unreachable!("a line at least") };
        ExposureWords { count, call, era, eras }
    }

    /// Returns the number of this member's exposures in its calls at a window position. The number
    /// only grows.
    #[inline(always)]
    pub(crate) fn exposed(&self, position: usize) -> u64 {
        self.exposing(position).count.load(Relaxed)
    }

    /// Counts an exposure of a buffer by this member to `peer`, in the call with `word`.
    ///
    /// # Panics
    /// When the member has already exposed a buffer to `peer` under this number, and not all
    /// exposures have been detached since. The peer could attach the address of one buffer with the
    /// length of the other.
    #[inline(always)]
    pub(crate) fn count_exposure(&self, peer: Rank, position: usize, exposure: u32, word: u64) {
        let exposing = self.exposing(position);
        if exposing.call.load(Relaxed) != word {
            exposing.call.store(word, Relaxed);
            exposing.begin_era();
        }
        let (era, own) = (exposing.era.load(Relaxed), peer.index() * EXPOSURES as usize);
        let exposed = &exposing.eras[own + exposure as usize];
        assert!(
            exposed.load(Relaxed) != era,
            "a PE exposes one buffer to a peer under each number in a call"
        );
        exposed.store(era, Relaxed);
        exposing.count.store(exposing.count.load(Relaxed) + 1, Relaxed);
    }

    /// Frees the numbers of all exposures in this member's call at a window position.
    #[inline(always)]
    pub(crate) fn free_exposures(&self, position: usize) {
        self.exposing(position).begin_era();
    }

    /// Returns the credits that member `from` has given to member `to`: a word for each kind.
    #[inline(always)]
    fn credits(&self, to: Rank, from: Rank) -> &Line {
        self.memory.member_line(to, self.memory.geometry.credits + from.index() * LINE_WORDS)
    }

    /// Stores this member's credit for a quarter at member `to`. Returns the index of the word. The
    /// caller must notify `to` of it.
    #[inline(always)]
    pub(crate) fn store_credit(&self, to: Rank, credit: Credit, quarter: u64) -> usize {
        let word = credit as usize;
        // Release: pairs with the acquire in `has_credit`.
        self.credits(to, self.rank).publish_at(word, quarter + 1);
        self.credits_at(to, self.rank) + word
    }

    /// Returns whether member `from` has given this member a credit of this kind for a quarter or a
    /// later one.
    #[inline(always)]
    pub(crate) fn has_credit(&self, from: Rank, credit: Credit, quarter: u64) -> bool {
        self.credits(self.rank, from).word_at(credit as usize) > quarter
    }

    /// Returns the index of the first word of the line through which `owner` exposes a buffer to
    /// `peer`, in the call at a window position.
    #[inline(always)]
    pub(crate) fn exposure_at(
        &self,
        peer: Rank,
        owner: Rank,
        position: usize,
        exposure: u32,
    ) -> usize {
        assert!(
            exposure < EXPOSURES,
            "a PE exposes at most {EXPOSURES} buffers to a peer in a call"
        );
        let last = peer.max(owner);
        if last.index() >= self.size() {
            self.refuse(last);
        }
        let of_owner = (position * self.size() + owner.index()) * EXPOSURES as usize;
        let line = of_owner + exposure as usize;
        let Geometry { exposures, .. } = self.memory.geometry;
        self.memory.geometry.member(peer, exposures + line * LINE_WORDS)
    }

    /// Returns the line that begins at word `first`.
    #[inline(always)]
    pub(crate) fn line_at(&self, first: usize) -> &Line {
        Line::of_words(&self.memory.words[first..first + LINE_WORDS])
    }

    /// Counts a move of this member's calls: a call has begun a new wait or has completed.
    #[inline(always)]
    pub(crate) fn move_on(&self, is_nonblocking: bool) {
        self.memory.move_on(self.rank, is_nonblocking);
    }

    /// Gives all peers this member's credit for a quarter: it has left another quarter of the
    /// window.
    pub(crate) fn give_credit(&self, quarter: u64) {
        for peer in self.others() {
            let at = self.store_credit(peer, Credit::Own, quarter);
            if self.job.must_notify() {
                self.notify(peer, at, 1);
            }
        }
        self.job.flush();
    }

    pub(crate) fn others(&self) -> impl Iterator<Item = Rank> + use<> {
        let rank = self.rank;
        self.memory.members().filter(move |peer| *peer != rank)
    }

    /// Returns the members in the form that `Failure` uses. Empty for the world.
    pub fn team(&self) -> Members {
        if self.is_world() { Members::default() } else { self.memory.team() }
    }

    /// Returns the word of one of this member's recent calls.
    pub(crate) fn word(&self, call: u64) -> u64 {
        self.memory.word(self.rank, call)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The world's memory is part of the job's memory. Once the job has failed, the memory of a
        // team may stay allocated.
        if self.is_world() {
            return;
        }
        self.job.sites.leave(self.number);
        self.job.leave_group(self.number);
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("ranks", &self.ranks).finish_non_exhaustive()
    }
}
