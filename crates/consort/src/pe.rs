//! A processing element.

use std::{fmt, sync::Arc};

use consort_fabric::Rank;
use consort_native::{
    Endpoint, Job, Waiting,
    affinity::{self, CpuId},
};

use crate::{
    Team,
    runtime::{selection::Choices, state::State, teams::Teams},
};

/// A processing element: one thread of a job. [`Pes::run`](crate::Pes::run) passes it to the
/// program. It cannot be sent to another thread.
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
    /// Makes a PE on its own thread, and pins the thread.
    pub(crate) fn new(job: &Arc<Job>, rank: Rank, cpu: Option<CpuId>, choices: Choices) -> Self {
        if let Some(cpu) = cpu
            && let Err(error) = affinity::pin(cpu)
        {
            tracing::warn!(%rank, %error, "a PE could not be pinned to its core");
        }
        let endpoint = Endpoint::new(Arc::clone(job), rank);
        Self { state: State::new(endpoint, choices), teams: Teams::default() }
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

    /// The way in which the PEs of this job wait.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        self.state.endpoint.job().config().waiting
    }
}

impl fmt::Debug for Pe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pe").field("world", &self.world()).finish()
    }
}
