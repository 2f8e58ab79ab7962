//! A processing element.

use std::{fmt, sync::Arc, time::Duration};

use consort_fabric::Rank;
use consort_native::{Endpoint, Job, Waiting};

use crate::{
    Team,
    runtime::{selection::Choices, state::State, teams::Teams},
};

/// A processing element: one thread of a job. [`Pes::run`](crate::Pes::run) passes it to the
/// program, and [`Job::join`](crate::Job::join) gives it to a thread that exists. It cannot be sent
/// to another thread.
///
/// ```
/// use consort::{Pes, Waiting};
///
/// let waited = Pes::threads(2).waiting(Waiting::SpinYield).run(|pe| {
///     let world = pe.world(); // the team of all PEs
///     world.barrier()?;
///     Ok((world.rank().0, world.size(), pe.waiting()))
/// })?;
/// assert_eq!(waited[1].1, (1, 2, Waiting::SpinYield));
/// # Ok::<(), consort::Error>(())
/// ```
pub struct Pe {
    pub(crate) state: State,
    teams: Teams,
}

impl Pe {
    pub(crate) fn new(job: &Arc<Job>, rank: Rank, choices: Choices) -> Self {
        let endpoint = Endpoint::new(Arc::clone(job), rank);
        Self { state: State::new(endpoint, choices), teams: Teams::default() }
    }

    /// Drops all teams but the world. Nothing refers to them any more.
    pub(crate) fn leave_teams(&mut self) {
        self.teams = Teams::default();
    }

    /// The world and all teams that are not freed.
    pub(crate) fn alive(&self) -> impl Iterator<Item = &State> {
        let teams = self.teams.iter().filter(|team| !team.is_freed());
        std::iter::once(&self.state).chain(teams)
    }

    /// The team of all PEs, with the default modes.
    #[must_use]
    pub fn world(&self) -> Team<'_> {
        Team::new(&self.state, &self.teams)
    }

    /// The team whose state has this number: the world for 0.
    #[inline]
    pub(crate) fn team(&self, number: usize) -> Team<'_> {
        let of_team = (number > 0).then(|| self.teams.state(number)).flatten();
        Team::new(of_team.unwrap_or(&self.state), &self.teams)
    }

    /// Runs `calls`, in which a collective that waits for longer than `limit` fails the job with
    /// [`Error::TimedOut`](crate::Error::TimedOut): for programs that would rather end than hang.
    /// One-sided waits and requests have variants of their own, which can be resumed. Local.
    ///
    /// ```
    /// use consort::{Error, Pes, Rank};
    /// use std::{thread, time::Duration};
    ///
    /// let ended = Pes::threads(2).run(|pe| {
    ///     if pe.world().rank() == Rank(1) {
    ///         thread::sleep(Duration::from_millis(200)); // is late
    ///     }
    ///     pe.within(Duration::from_millis(50), || pe.world().barrier())
    /// });
    /// assert!(matches!(ended, Err(Error::TimedOut(_))));
    /// ```
    pub fn within<R>(&self, limit: Duration, calls: impl FnOnce() -> R) -> R {
        let endpoint = &self.state.endpoint;
        let _resets = Resets { endpoint, before: endpoint.limit_waits(Some(limit)) };
        calls()
    }

    /// The way in which the PEs of this job wait.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        self.state.endpoint.job().config().waiting
    }
}

/// Sets the limit of waits back when it is dropped.
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
