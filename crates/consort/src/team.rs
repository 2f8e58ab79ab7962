//! A team of PEs and its collectives.

use std::fmt;

use consort_collectives::Algorithm;
use consort_fabric::{CallSpec, Candidate, Collective, Rank, SyncMode, SyncModes};

use crate::{
    Error, Result,
    error::CallError,
    runtime::{
        making::Outside,
        selection::Choices,
        state::{Hold, State},
        teams::Teams,
    },
    tune::ChosenBy,
};

/// A team of PEs, from the view of one of them, with the synchronization modes of its calls.
/// [`Pe::world`](crate::Pe::world) is the team of all PEs of the job; [`Team::split`] and other
/// methods form smaller teams.
///
/// Ranks are ranks in the team, from 0 on. Every method is collective unless its documentation says
/// that it is local: all PEs of the team call it, in the same order, with the same root, length,
/// type, operator and modes.
///
/// Calls of different teams are independent, but a PE makes its calls one after the other. A PE in
/// several teams must order their calls so that all PEs can proceed: if PEs wait for each other in
/// a cycle, all get [`Error::Mismatched`].
///
#[doc = include_str!("team.md")]
///
/// # Errors
/// Every collective returns [`Error::PeFailed`] when a PE has failed and [`Error::Mismatched`] when
/// PEs made different calls.
///
/// A collective panics when its operator does. The job has then failed, even if the panic is
/// caught.
#[derive(Clone, Copy)]
pub struct Team<'p> {
    pub(crate) state: Hold<'p>,
    pub(crate) teams: &'p Teams,
    rank: Rank,
    pes: u32,
    sync: SyncModes,
}

/// # Information, modes, choice of algorithms
impl<'p> Team<'p> {
    pub(crate) fn new(state: &'p State, teams: &'p Teams) -> Self {
        let (rank, pes) = (state.endpoint.rank(), state.endpoint.size());
        Self { state: Hold::new(state), teams, rank, pes, sync: SyncModes::default() }
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
        self.rank().plus(u64::from(self.pes()) - 1, self.pes())
    }

    /// Returns the PE after this one; the first PE for the last. Local.
    #[must_use]
    pub fn right(&self) -> Rank {
        self.rank().plus(1, self.pes())
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
    pub fn with_sync(self, sync: SyncModes) -> Self {
        Self { sync, ..self }
    }

    /// Returns the modes of this team's calls. Local.
    #[must_use]
    pub fn sync(&self) -> SyncModes {
        self.sync
    }

    /// Returns the algorithm that serves a call such as `broadcast_slice` or `reduce_slice` (with a
    /// commutative operator) of `bytes`, and the origin of that choice. Local.
    #[must_use]
    pub fn choice(&self, collective: Collective, bytes: usize) -> (Candidate, ChosenBy) {
        let sync = if collective == Collective::Barrier { SyncModes::STRICT } else { self.sync };
        let call = CallSpec { collective, sync, bytes, ..CallSpec::barrier(self.pes) };
        self.state.select(&call)
    }

    /// Forces `candidate` for all later calls of `collective`; `None` restores the automatic
    /// choice. Local, but all PEs of the team must pass the same before their next call. Has no
    /// effect on a freed team.
    ///
    /// ```
    /// use consort::{Job, Rank, tune::{Candidate, Collective}};
    ///
    /// Job::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     let tree = Candidate::new("knomial").with("radix", 2);
    ///     world.force(Collective::Broadcast, Some(tree.clone()));
    ///     world.broadcast(1, Rank(0))?;
    ///     assert_eq!(world.served_by(Collective::Broadcast), Some(tree));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn force(&self, collective: Collective, candidate: Option<Candidate>) {
        self.choose(|choices| choices.force(collective, candidate));
    }

    /// Forces an algorithm of the program, which the library does not know, for all later calls of
    /// `collective`, with the parameters in `candidate`. Such a barrier serves only calls of
    /// `barrier`: other calls use an entry and exit barrier of the library. Local, but all PEs of
    /// the team must pass the same before their next call. [`Team::force`] undoes it. Has no effect
    /// on a freed team.
    ///
    /// An algorithm that waits for a message that is never sent hangs, because no PE is missing.
    ///
    /// In a job with [`helper_threads`](crate::JobBuilder::helper_threads), nonblocking calls fail
    /// with [`CallError::Plan`]: a helper would drive the algorithm, whose future need not be
    /// `Send`.
    ///
    /// # Panics
    /// When the name in `candidate` is not the algorithm's.
    pub fn force_with<A: Algorithm>(&self, collective: Collective, candidate: Candidate) {
        assert_eq!(candidate.algorithm, A::NAME, "a candidate has its algorithm's name");
        let outside = Outside::of::<A>();
        self.choose(|choices| choices.force_outside(collective, candidate, outside));
    }

    fn choose(&self, change: impl FnOnce(&mut Choices)) {
        if self.state.ensure_alive().is_err() {
            return; // the state may belong to another team
        }
        change(&mut self.state.choices.borrow_mut());
        self.state.cache.clear();
        self.state.barrier.borrow_mut().take();
        if let Some(refinements) = &self.state.refinements {
            refinements.clear();
        }
    }

    /// Saves what refinement has found so far in calls of this team
    /// ([`JobBuilder::online`](crate::JobBuilder::online)) in the wisdom that the job uses, for
    /// later launches: PE 0 adds to the file an entry for each kind of call that has none, or one
    /// with another choice. Returns the number of these entries. Collective.
    ///
    /// # Errors
    /// [`Error::Wisdom`] on all PEs, when the job does not refine choices, uses no wisdom, or the
    /// file cannot be read or written; and see [`Team`].
    ///
    /// ```no_run
    /// # use consort::{Job, ops::Sum};
    /// Job::threads(2).online(0.05).run(|pe| {
    ///     let world = pe.world();
    ///     for step in 0..1_000_000 {
    ///         world.all_reduce(step, Sum)?;
    ///     }
    ///     let kept = world.save_refined()?;
    ///     # let _ = kept;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn save_refined(&self) -> Result<usize> {
        self.state.ensure_alive()?;
        let Some(refinements) = &self.state.refinements else {
            let why = "the job refines no choices: launch it with `JobBuilder::online`";
            return Err(Error::Wisdom(why.to_owned()));
        };
        let kept = match self.rank() {
            Rank(0) => self.state.choices.borrow().keep_found(refinements.found()),
            _ => Ok(0),
        };
        let count = kept.as_ref().map_or(u64::MAX, |&kept| kept as u64);
        let count = self.with_sync(SyncModes::MINE).broadcast(count, Rank(0))?;
        let elsewhere = || "PE 0 could not keep what refinement found".to_owned();
        match kept {
            Err(why) => Err(Error::Wisdom(why)),
            Ok(_) if count == u64::MAX => Err(Error::Wisdom(elsewhere())),
            Ok(_) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        }
    }

    /// Returns the algorithm of the last plan for `collective`; `None` once the team is freed.
    /// Local.
    #[must_use]
    pub fn served_by(&self, collective: Collective) -> Option<Candidate> {
        self.state.ensure_alive().ok()?;
        match collective {
            Collective::Barrier => {
                self.state.barrier.borrow().as_ref().map(|ready| ready.candidate().clone())
            }
            _ => self.state.cache.latest(collective),
        }
    }

    /// Returns the same team with exit mode Mine or All, for calls whose result the library uses
    /// immediately.
    pub(crate) fn keeping(self) -> Self {
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

impl fmt::Debug for Team<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("sync", &self.sync)
            .finish()
    }
}
