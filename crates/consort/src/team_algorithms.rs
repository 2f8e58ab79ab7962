//! The choice of algorithms for the calls of a team.

use std::fmt;

use consort_collectives::Algorithm;
use consort_fabric::{CallSpec, Candidate, Collective, Rank, SyncModes};
use consort_tuner::ChosenBy;

#[cfg(doc)]
use crate::error::CallError;
use crate::{
    Error, Result, Team,
    runtime::{making::Outside, selection::Choices},
};

/// The choice of algorithms for the calls of a team; from [`Team::algorithms`].
///
/// ```
/// use consort::{Job, Rank, tune::{Candidate, Collective}};
///
/// Job::threads(3).run(|pe| {
///     let world = pe.world();
///     let tree = Candidate::new("knomial").with("radix", 2);
///     world.algorithms().force(Collective::Broadcast, Some(tree.clone()));
///     world.broadcast(1, Rank(0))?;
///     assert_eq!(world.algorithms().served_by(Collective::Broadcast), Some(tree));
///     Ok(())
/// })?;
/// # Ok::<(), consort::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct TeamAlgorithms<'t> {
    team: &'t Team,
}

/// # Choice of algorithms
impl Team {
    /// Returns the choice of algorithms for this team's calls. Local.
    #[must_use]
    pub fn algorithms(&self) -> TeamAlgorithms<'_> {
        TeamAlgorithms { team: self }
    }
}

impl TeamAlgorithms<'_> {
    /// Returns the algorithm that serves a call on slices of `bytes`, with a commutative operator if it
    /// combines them, and the origin of that choice. Local.
    #[must_use]
    pub fn choice(&self, collective: Collective, bytes: usize) -> (Candidate, ChosenBy) {
        let sync =
            if collective == Collective::Barrier { SyncModes::STRICT } else { self.team.sync() };
        let call = CallSpec { collective, sync, bytes, ..CallSpec::barrier(self.team.pes()) };
        self.team.state.select(&call)
    }

    /// Forces `candidate` for all later calls of `collective`; `None` restores the automatic
    /// choice. Local, but all PEs of the team must pass the same before their next call. Has no
    /// effect on a freed team.
    ///
    /// # Panics
    /// In an operator: it runs inside a call, which uses the present choice.
    pub fn force(&self, collective: Collective, candidate: Option<Candidate>) {
        self.choose(|choices| choices.force(collective, candidate));
    }

    /// Forces an algorithm of the program, which the library does not know, for all later calls of
    /// `collective`, with the parameters in `candidate`. Such a barrier serves only calls of
    /// `barrier`: other calls use an entry and exit barrier of the library. Local, but all PEs of
    /// the team must pass the same before their next call. [`TeamAlgorithms::force`] undoes it. Has no effect
    /// on a freed team.
    ///
    /// If the algorithm waits for a message that is never sent, the PEs get [`Error::Mismatched`].
    ///
    /// In a job with [`helper_threads`](crate::JobBuilder::helper_threads), nonblocking calls fail
    /// with [`CallError::Plan`]: a helper would drive the algorithm, whose future need not be
    /// `Send`.
    ///
    /// # Panics
    /// When the name in `candidate` is not the algorithm's, and as [`TeamAlgorithms::force`].
    pub fn force_with<A: Algorithm>(&self, collective: Collective, candidate: Candidate) {
        assert_eq!(candidate.algorithm, A::NAME, "a candidate has its algorithm's name");
        let outside = Outside::of::<A>();
        self.choose(|choices| choices.force_outside(collective, candidate, outside));
    }

    fn choose(&self, change: impl FnOnce(&mut Choices)) {
        if self.team.state.ensure_alive().is_err() {
            return; // the state may belong to another team
        }
        assert!(
            !self.team.state.is_inside(),
            "an operator may not choose algorithms: it runs inside a call"
        );
        change(&mut self.team.state.choices.borrow_mut());
        self.team.state.cache.clear();
        self.team.state.barrier.borrow_mut().take();
        if let Some(refinements) = &self.team.state.refinements {
            refinements.clear();
        }
    }

    /// Saves what refinement has found so far in calls of this team
    /// ([`JobBuilder::online`](crate::JobBuilder::online)) in the wisdom that the job uses, for
    /// later launches. PE 0 adds an entry for each kind of call whose entry is missing or has
    /// another choice. Returns the number of these entries. Collective.
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
    ///     let kept = world.algorithms().save_refined()?;
    ///     # let _ = kept;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn save_refined(&self) -> Result<usize> {
        self.team.state.ensure_alive()?;
        let Some(refinements) = &self.team.state.refinements else {
            let why = "the job refines no choices: launch it with `JobBuilder::online`";
            return Err(Error::Wisdom(why.to_owned()));
        };
        let kept = match self.team.rank() {
            Rank(0) => self.team.state.choices.borrow().keep_found(refinements.found()),
            _ => Ok(0),
        };
        let count = kept.as_ref().map_or(u64::MAX, |&kept| kept as u64);
        let count = self.team.with_sync(SyncModes::MINE).broadcast(count, Rank(0))?;
        let elsewhere =
            || "PE 0 could not save the refined choices: its own error names the reason".to_owned();
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
        self.team.state.ensure_alive().ok()?;
        match collective {
            Collective::Barrier => {
                self.team.state.barrier.borrow().as_ref().map(|ready| ready.candidate().clone())
            }
            _ => self.team.state.cache.latest(collective),
        }
    }
}

impl fmt::Debug for TeamAlgorithms<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TeamAlgorithms").field("team", &self.team).finish()
    }
}
