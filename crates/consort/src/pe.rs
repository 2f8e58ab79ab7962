//! A processing element.

use std::{fmt, sync::Arc, time::Duration};

use consort_fabric::Rank;
use consort_machine::Waiting;
use consort_native::{Endpoint, Job};

use crate::{
    Error, Result, Team,
    launch::Fabric,
    runtime::{selection::Choices, state::State, teams::Teams},
};

/// A processing element: one thread of a job. [`JobBuilder::run`](crate::JobBuilder::run) passes it
/// to the program, and [`Job::join`](crate::Job::join) gives it to an existing thread. It cannot be
/// sent to another thread.
///
/// ```
/// use consort::{Job, Waiting};
///
/// let waited = Job::threads(2).waiting(Waiting::SpinYield).run(|pe| {
///     let world = pe.world(); // the team of all PEs
///     world.barrier()?;
///     Ok((world.rank().0, world.size(), pe.waiting()))
/// })?;
/// assert_eq!(waited[1], (1, 2, Waiting::SpinYield));
/// # Ok::<(), consort::Error>(())
/// ```
pub struct Pe {
    pub(crate) state: State,
    teams: Teams,
}

impl Pe {
    pub(crate) fn new(job: &Arc<Job>, rank: Rank, choices: Choices) -> Result<Self> {
        let endpoint = Endpoint::new(Arc::clone(job), rank)?;
        Ok(Self { state: State::new(endpoint, choices), teams: Teams::default() })
    }

    /// Drops all teams but the world. Nothing refers to them any more.
    pub(crate) fn leave_teams(&mut self) {
        self.teams = Teams::default();
        self.state.endpoint.forget_strided();
    }

    /// Returns the world and all teams that are not freed.
    pub(crate) fn alive(&self) -> impl Iterator<Item = &State> {
        let teams = self.teams.iter().filter(|team| !team.is_freed());
        std::iter::once(&self.state).chain(teams)
    }

    /// Returns the team of all PEs, with the default modes.
    #[must_use]
    pub fn world(&self) -> Team<'_> {
        Team::new(&self.state, &self.teams)
    }

    /// Returns the team whose state has this number: the world for 0.
    #[inline]
    pub(crate) fn team(&self, number: usize) -> Team<'_> {
        let of_team = (number > 0).then(|| self.teams.state(number)).flatten();
        Team::new(of_team.unwrap_or(&self.state), &self.teams)
    }

    /// Runs `calls`. A wait in them that takes longer than `limit` fails the job with
    /// [`Error::TimedOut`]: for programs that should end rather than hang. Inside another
    /// `with_timeout`, the smaller limit applies. Local.
    ///
    /// One-sided waits and requests also have variants that return on a time-out and can be
    /// resumed: `wait_until_timeout` and `wait_timeout`.
    ///
    /// ```
    /// use consort::{Error, Job, Rank};
    /// use std::{thread, time::Duration};
    ///
    /// let ended = Job::threads(2).run(|pe| {
    ///     if pe.world().rank() == Rank(1) {
    ///         thread::sleep(Duration::from_millis(200)); // is late
    ///     }
    ///     pe.with_timeout(Duration::from_millis(50), || pe.world().barrier())
    /// });
    /// assert!(matches!(ended, Err(Error::TimedOut(_))));
    /// ```
    pub fn with_timeout<R>(&self, limit: Duration, calls: impl FnOnce() -> R) -> R {
        let endpoint = &self.state.endpoint;
        let before = endpoint.limit_waits(None);
        let _resets = Resets { endpoint, before };
        endpoint.limit_waits(Some(before.map_or(limit, |outer| outer.min(limit))));
        calls()
    }

    /// Returns the kind of the PEs, and which of them share memory; the same on all PEs.
    ///
    /// ```
    /// use consort::{Job, launch::Fabric};
    ///
    /// let fabrics = Job::threads(2).run(|pe| Ok(pe.fabric()))?;
    /// assert_eq!(fabrics, [Fabric::Threads; 2]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[must_use]
    pub fn fabric(&self) -> Fabric {
        self.state.choices.borrow().algorithms().fabric()
    }

    /// Returns the policy by which the PEs of this job wait.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        self.state.endpoint.job().config().waiting
    }
}

/// The last action of a PE in the world when its program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Declares that the PE makes no more calls, and checks that its peers' calls match.
    Checks,
    /// Declares that the PE makes no more calls. The waiter for all PEs checks them.
    Finishes,
    /// Declares nothing: another thread may run the PE.
    Leaves,
}

impl Pe {
    /// Ends a program: waits for its nonblocking calls, and leaves all teams but the world.
    pub(crate) fn end(&mut self, ending: Ending) -> Result<()> {
        self.state.ensure_kept()?;
        self.state.end_sharing()?;
        self.alive().try_for_each(State::drain)?;
        self.await_receipts()?;
        let mut finished = self.alive().try_for_each(|team| {
            if team.endpoint.group().is_world() { Ok(()) } else { team.endpoint.finish() }
        });
        match ending {
            Ending::Checks => finished = finished.and_then(|()| self.state.endpoint.finish()),
            Ending::Finishes => self.state.endpoint.mark_finished(),
            Ending::Leaves => {}
        }
        finished.map_err(|_| Error::of_job(self.state.endpoint.job()))?;
        self.leave_teams();
        Ok(())
    }

    /// Waits until this PE's messages have been received, so that a message that nobody receives is
    /// reported.
    fn await_receipts(&self) -> Result<()> {
        let sent = self.teams.messages_of(self.state.endpoint.rank_in_world());
        sent.into_iter().try_for_each(State::await_peers)
    }

    /// Drops what is left in a failed job. Operations revoke the memory that they have exposed.
    pub(crate) fn abandon(&mut self) {
        self.state.endpoint.engine().clear();
        self.leave_teams();
    }
}

/// Restores the limit of waits when dropped.
struct Resets<'e> {
    endpoint: &'e Endpoint,
    before: Option<Duration>,
}

impl Drop for Resets<'_> {
    fn drop(&mut self) {
        self.endpoint.limit_waits(self.before);
    }
}

impl fmt::Debug for Pe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pe").field("world", &self.world()).finish()
    }
}
