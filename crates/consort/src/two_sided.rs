//! Messages from one PE to another, which both call for.
//!
//! Two PEs are a team of their own, which they form at their first message. A message is a
//! broadcast in it, by the algorithm of two-sided messages: through the message buffer of its
//! sender.

use std::panic::Location;

use consort_fabric::{CallSpec, Candidate, Collective, Pod, Rank, SyncModes};
use consort_native::{Buffer, Operands, Site};
use consort_tuner::Catalog;

use crate::{Error, Result, Team, TeamError};

/// # Two-sided messages
impl<'p> Team<'p> {
    /// Sends `data` to PE `to`, which [receives](Team::receive) it. Returns once it has. Only the
    /// two PEs call this, each for the same number of elements.
    ///
    /// Messages between two PEs are received in the order in which they were sent, in all teams.
    /// Two PEs that both send first wait for each other: both get [`Error::Mismatched`]. The first
    /// message between two PEs takes the memory of a team until the job ends.
    ///
    /// ```
    /// use consort::{Pes, Rank};
    ///
    /// let results = Pes::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     let mut data = [0; 4];
    ///     match world.rank() {
    ///         Rank(0) => world.send(Rank(2), &[1, 2, 3, 4])?,
    ///         Rank(2) => world.receive(Rank(0), &mut data)?,
    ///         _ => {} // PE 1 takes no part
    ///     }
    ///     Ok(data)
    /// })?;
    /// assert_eq!(results[2].1, [1, 2, 3, 4]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`]; [`TeamError::Twice`] when `to` is the caller;
    /// [`TeamError::Memory`]; [`Error::PeFailed`]; [`Error::Mismatched`] when the two differ in the
    /// length, or wait for each other.
    #[track_caller]
    pub fn send<T: Pod>(&self, to: Rank, data: &[T]) -> Result<()> {
        let pair = self.pair(to)?;
        let root = pair.rank();
        pair.message::<T>(
            root,
            (Buffer::source(data), Buffer::ABSENT),
            data.len(),
            Location::caller(),
        )
    }

    /// Receives into `data` what PE `from` [sends](Team::send) to this PE, and waits for it.
    ///
    /// # Errors
    /// As [`Team::send`].
    #[track_caller]
    pub fn receive<T: Pod>(&self, from: Rank, data: &mut [T]) -> Result<()> {
        let pair = self.pair(from)?;
        let (root, len) = (pair.left(), data.len());
        pair.message::<T>(root, (Buffer::ABSENT, Buffer::target(data)), len, Location::caller())
    }

    fn message<T: Pod>(
        &self,
        root: Rank,
        (source, target): (Buffer<'_>, Buffer<'_>),
        len: usize,
        site: Site,
    ) -> Result<()> {
        let operands = Operands { kernel: None, source, target, layouts: None };
        let call = (Collective::Broadcast, self.sync());
        self.state.call::<T, T>(call, Some(root), len, false, (&operands, site), "")
    }

    /// The team of this PE and a peer, in which a PE's left neighbour is the other.
    fn pair(&self, peer: Rank) -> Result<Self> {
        let members = [self.world_rank(self.rank())?, self.world_rank(peer)?];
        let (first, last) = (members[0].min(members[1]), members[0].max(members[1]));
        if first == last {
            return Err(TeamError::Twice { rank: peer }.into());
        }
        if let Some(state) = self.teams.pair(first, last) {
            return Ok(Team::new(state, self.teams));
        }
        let pair = self.form_strided(first, last.0 - first.0, 2)?;
        let pair = pair.ok_or(Error::JobFailed)?.with(SyncModes::default());
        let two_sided = Candidate::new("two_sided_binomial");
        let (collective, sync) = (Collective::Broadcast, pair.sync());
        let call = CallSpec { collective, sync, bytes: 1, ..CallSpec::barrier(2) };
        let serves = pair.state.choices.borrow().algorithms().serves(&call, &two_sided);
        // PEs that share no memory have no buffers to reach: their messages go as broadcasts do.
        pair.force(collective, serves.then_some(two_sided));
        self.teams.keep_pair((first, last), &pair.state);
        Ok(pair)
    }
}
