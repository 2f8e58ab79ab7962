//! A processing element.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{Arc, Weak},
    time::Duration,
};

use consort_fabric::Rank;
use consort_machine::{Waiting, discard};
use consort_native::{Endpoint, Job, Waits};

use crate::{
    Error, Result, Team,
    launch::Fabric,
    runtime::{
        hold::{Hold, States, TakesBack, ThreadBoundPe},
        kept::{self, Kept},
        selection::Choices,
        state::State,
        teams::Teams,
    },
};

/// A processing element (PE): a thread with a rank in a job, as a process is in MPI.
/// [`JobBuilder::run`](crate::JobBuilder::run) passes it to the program, and
/// [`Job::join`](crate::Job::join) gives it to an existing thread. It cannot be sent to another
/// thread.
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
    world: Team,
}

impl Pe {
    /// Creates the PE of a rank of a job. Its states go to `taking_back` when no handle on them is
    /// left.
    pub(crate) fn new(
        job: &Arc<Job>,
        rank: Rank,
        choices: Choices,
        taking_back: Weak<dyn TakesBack>,
    ) -> Result<Self> {
        let endpoint = Endpoint::new(Arc::clone(job), rank)?;
        let world = State::new(endpoint, choices);
        let states = Box::new(States { world, teams: Teams::default() });
        Ok(Self::of(ThreadBoundPe::new(states, taking_back)))
    }

    /// Returns the PE with these states, for the calling thread to run.
    pub(crate) fn of(owner: Rc<ThreadBoundPe>) -> Self {
        owner.world.set_away(false);
        Self { world: Team::new(Hold::new(owner, 0)) }
    }

    /// Returns the PE's states, which this thread no longer runs.
    pub(crate) fn into_owner(self) -> Rc<ThreadBoundPe> {
        self.state().set_away(true);
        Rc::clone(self.world.state.owner())
    }

    /// Returns the state of the world.
    #[inline(always)]
    pub(crate) fn state(&self) -> &Hold {
        &self.world.state
    }

    pub(crate) fn states(&self) -> &ThreadBoundPe {
        self.world.state.owner()
    }

    /// Returns the team of all PEs, with the default modes. Clone it to keep it.
    #[inline(always)]
    #[must_use]
    pub fn world(&self) -> &Team {
        &self.world
    }

    /// Returns the team whose state has this number: the world for 0.
    pub(crate) fn team(&self, number: usize) -> Team {
        Team::new(self.world.state.of_team(number))
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
        let endpoint = &self.state().endpoint;
        let before = endpoint.limit_waits(None);
        let _resets = Resets { endpoint, before };
        endpoint.limit_waits(Some(before.map_or(limit, |outer| outer.min(limit))));
        calls()
    }

    /// Returns the value of this type that the PE keeps. `make` makes it at the first call. It
    /// lasts until the PE's program ends. In a [`Pool`](crate::Pool), all regions find the same
    /// value, until the pool ends or a region fails. Local.
    ///
    /// The value may own teams, symmetric memory and plans of this PE. It stays on the PE's thread,
    /// and is dropped there. PE 0 of a pool is the thread that calls
    /// [`Pool::run`](crate::Pool::run). If that thread has ended, or another thread drops the pool,
    /// the value is dropped when its thread ends, or runs another region.
    ///
    /// Between regions, nothing makes progress: do not keep asynchronous broadcasts. If there are
    /// [shared handles](crate::Symmetric::share) at the end of a region, even kept ones, the region
    /// fails.
    ///
    /// # Errors
    /// The error of `make`; [`CallError::InUse`](crate::error::CallError::InUse) when the value of
    /// this type is in use already.
    ///
    /// ```
    /// use consort::{Job, Pe, Symmetric, Team, ops::Sum};
    ///
    /// struct Solver {
    ///     world: Team,
    ///     residual: Symmetric<f64>,
    /// }
    ///
    /// impl Solver {
    ///     fn new(pe: &Pe) -> consort::Result<Self> {
    ///         let world = pe.world().clone();
    ///         Ok(Self { residual: world.symmetric(1)?, world })
    ///     }
    ///
    ///     fn step(&mut self) -> consort::Result<f64> {
    ///         let residual = self.residual.load(0)? + 1.0;
    ///         self.residual.store(0, residual)?;
    ///         self.world.all_reduce(residual, Sum)
    ///     }
    /// }
    ///
    /// let pool = Job::threads(2).pool()?;
    /// for step in 1..=3 {
    ///     let sums = pool.run(|pe| pe.keep(Solver::new)?.step())?;
    ///     assert_eq!(sums, [2.0 * f64::from(step); 2]); // it continues where it was
    /// }
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn keep<T: 'static>(&self, make: impl FnOnce(&Self) -> Result<T>) -> Result<Kept<T>> {
        self.try_keep(make)
    }

    /// As [`Pe::keep`], for values whose making has its own error type; see
    /// [`JobBuilder::try_run`](crate::JobBuilder::try_run).
    ///
    /// # Errors
    /// As [`Pe::keep`].
    pub fn try_keep<T: 'static, E: From<Error>>(
        &self,
        make: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<Kept<T>, E> {
        kept::take(self.world.state.owner(), || make(self))
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
        self.state().choices.borrow().algorithms().fabric()
    }

    /// Returns the policy by which the PEs of this job wait.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        self.state().endpoint.job().config().waiting
    }

    /// Returns what the waits of this PE have done so far: how often they polled, yielded and slept,
    /// and for how long. Waits that polling ends are not counted, so that counting costs them
    /// nothing. In a [`Pool`](crate::Pool), the time between regions does not count. Local.
    ///
    /// ```
    /// use consort::{Job, Rank};
    /// use std::{thread, time::Duration};
    ///
    /// let waits = Job::threads(2).run(|pe| {
    ///     if pe.world().rank() == Rank(1) {
    ///         thread::sleep(Duration::from_millis(10)); // is late
    ///     }
    ///     pe.world().barrier()?;
    ///     Ok(pe.waits())
    /// })?;
    /// let [waiter, late] = [waits[0].time, waits[1].time];
    /// println!("PE 0 has waited for {waiter:?}, and PE 1 for {late:?}");
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[must_use]
    pub fn waits(&self) -> Waits {
        self.state().endpoint.waits()
    }
}

/// The last action of a PE in the world when its program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Declares that the PE makes no more calls, and checks that its peers' calls match.
    Checks,
    /// Declares that the PE makes no more calls in the region of this number. The waiter for all PEs
    /// checks them.
    EndsRegion(u64),
    /// Declares nothing: another thread may run the PE.
    Leaves,
}

impl Pe {
    /// Ends a program: waits for its nonblocking calls, and leaves all teams but the world. A PE of
    /// a pool keeps the teams on which there are handles.
    pub(crate) fn end(&self, ending: Ending) -> Result<()> {
        let keeps = matches!(ending, Ending::EndsRegion(_));
        if !keeps {
            kept::forget(self.states());
        }
        let world = self.state();
        world.ensure_kept()?;
        world.end_sharing()?;
        self.states().alive().try_for_each(State::drain)?;
        self.await_receipts()?;
        let mut teams = self.states().alive().skip(1);
        let mut finished = teams.try_for_each(|team| team.endpoint.finish());
        match ending {
            Ending::Checks => finished = finished.and_then(|()| world.endpoint.finish()),
            Ending::EndsRegion(number) => world.endpoint.finish_region(number),
            Ending::Leaves => {}
        }
        finished.map_err(|_| Error::of_job(world.endpoint.job()))?;
        self.states().leave_teams(keeps)
    }

    /// Waits until this PE's messages have been received, so that a message that nobody receives is
    /// reported.
    fn await_receipts(&self) -> Result<()> {
        if !self.states().teams.have_messages() {
            return Ok(());
        }
        let sent = self.states().teams.messages_of(self.state().endpoint.rank_in_world());
        sent.into_iter().try_for_each(State::await_peers)
    }

    /// Drops what is left in a failed job. Operations revoke the memory that they have exposed.
    pub(crate) fn abandon(&self) {
        self.state().endpoint.engine().clear();
        let forgotten = catch_unwind(AssertUnwindSafe(|| kept::forget(self.states())));
        discard(forgotten.err());
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
        f.debug_struct("Pe").field("world", &self.world).finish()
    }
}
