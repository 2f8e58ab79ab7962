//! A team of PEs and its collectives.

use std::fmt;

use consort_fabric::{Rank, SyncMode, SyncModes};

#[cfg(doc)]
use crate::Error;
use crate::{Result, error::CallError, runtime::hold::Hold};

/// A team of PEs, as one of them sees it: MPI's communicator. Its methods are the calls that its PEs
/// make together, and those that one makes to another. [`Pe::world`](crate::Pe::world) is the team of
/// all PEs of the job; [`Team::split`] and other methods form smaller teams.
///
/// Ranks are ranks in the team, from 0 on. Every method is collective unless its documentation says
/// that it is local: all PEs of the team call it, in the same order, with the same root, length,
/// type, operator and modes.
///
/// It is a handle: a clone is the same team, and a struct can own it. It stays on the thread that
/// runs its PE; see [`Pe::keep`](crate::Pe::keep).
///
/// Calls of different teams are independent, but a PE makes its calls one after the other. A PE in
/// several teams must order their calls so that all PEs can proceed: if PEs wait for each other in
/// a cycle, all get [`Error::Mismatched`].
///
#[doc = include_str!("team.md")]
///
/// # Errors
/// Every collective returns [`Error::PeFailed`] when a PE has failed, [`Error::Mismatched`] when
/// PEs made different calls, and [`CallError::Ended`] when the PE is not running: its program or its
/// region has ended, or its thread has left the job.
///
/// A collective panics when its operator does. The job has then failed, even if the panic is
/// caught.
#[derive(Clone)]
pub struct Team {
    pub(crate) state: Hold,
    rank: Rank,
    pes: u32,
    sync: SyncModes,
}

/// # Information and modes
impl Team {
    pub(crate) fn new(state: Hold) -> Self {
        let (rank, pes) = (state.endpoint.rank(), state.endpoint.size());
        Self { state, rank, pes, sync: SyncModes::default() }
    }

    /// Returns the caller's rank. Local.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the number of PEs. Local.
    #[must_use]
    pub fn size(&self) -> usize {
        self.pes as usize
    }

    /// As [`Team::size`], as the engine counts.
    pub(crate) fn pes(&self) -> u32 {
        self.pes
    }

    /// Returns the PE before this one; the last PE for the first. Local.
    #[must_use]
    pub fn left(&self) -> Rank {
        self.rank().plus(self.size() - 1, self.size())
    }

    /// Returns the PE after this one; the first PE for the last. Local.
    #[must_use]
    pub fn right(&self) -> Rank {
        self.rank().plus(1, self.size())
    }

    /// Returns the same team with other synchronization modes for its calls. Local.
    ///
    /// ```
    /// # use consort::{Job, Rank, sync_modes::SyncModes};
    /// Job::threads(2).run(|pe| {
    ///     let strict = pe.world().with_sync(SyncModes::STRICT);
    ///     strict.broadcast(7, Rank(0)) // nobody returns before all have entered
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[must_use]
    pub fn with_sync(&self, sync: SyncModes) -> Self {
        Self { sync, ..self.clone() }
    }

    /// Returns the modes of this team's calls. Local.
    #[must_use]
    pub fn sync(&self) -> SyncModes {
        self.sync
    }

    /// Returns the same team with exit mode Mine or All, for calls whose result the library uses
    /// immediately.
    pub(crate) fn keeping(&self) -> Self {
        let exit = if self.sync.exit == SyncMode::None { SyncMode::Mine } else { self.sync.exit };
        self.with_sync(SyncModes { exit, ..self.sync })
    }

    pub(crate) fn refuse_borrowed(&self) -> Result<()> {
        if self.sync.exit == SyncMode::None {
            return Err(CallError::BorrowedSlice(self.sync).into());
        }
        Ok(())
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("sync", &self.sync)
            .finish()
    }
}
