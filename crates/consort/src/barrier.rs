//! A barrier for existing threads, in place of `std::sync::Barrier`.
//!
//! [`Barrier::wait`] is a central barrier (Mellor-Crummey and Scott 1991, "Algorithms for scalable
//! synchronization on shared-memory multiprocessors", section 3.1): each thread counts itself, and
//! the last one ends the phase, which all others watch. Cost: the cache lines of the count and of
//! the phases travel to each thread once. The threads have no ranks, because any number of threads
//! may arrive, so this is not an algorithm of a team.
//!
//! A [`BarrierMember`] is a PE, and its wait is the barrier of its team: the algorithms and their
//! cost are those of `barrier/` in `consort-collectives`. When members drop out, the remaining ones
//! form a smaller team after the phase. They agree without a message: a member announces its last
//! phase before the barrier of that phase, so all others see the announcement.

mod apart;
mod arrivals;

use std::{
    cell::Cell,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    time::Duration,
};

use consort_fabric::Rank;
use consort_machine::{ProcessToken, fork_safe::Found};
use consort_native::Event;

use self::{
    apart::Apart,
    arrivals::{Arrival, Arrivals, MOST},
};
use crate::{Error, Job, JoinedPe, Result, builder::JOINING, error::LaunchError, tune::Algorithms};

/// A barrier for `n` existing threads, in place of [`std::sync::Barrier`]. It can be used in two
/// ways:
///
/// - [`Barrier::wait`] works as in [`std::sync::Barrier`]: for any threads, even more than `n`, and
///   without errors to handle. Only the import changes.
/// - [`Barrier::join`] makes a thread a [`BarrierMember`]. If a member panics or never arrives, the
///   others get an error, where threads that only wait would hang. Its
///   [`wait`](BarrierMember::wait) is a [`Team::barrier`](crate::Team::barrier).
///
/// The two are counted separately: either all threads join, or none. `n` threads that wait release
/// each other, and so do `n` members.
///
/// Creating a barrier allocates nothing. The first `join` takes about 50 microseconds.
///
/// ```
/// use consort::Barrier; // was: use std::sync::Barrier;
/// use std::thread;
///
/// let barrier = Barrier::new(3);
/// let leaders = thread::scope(|scope| {
///     let threads = [(); 3].map(|()| scope.spawn(|| barrier.wait().is_leader()));
///     threads.map(|thread| thread.join().expect("no panic"))
/// });
/// assert_eq!(leaders.iter().filter(|&&leads| leads).count(), 1);
/// ```
pub struct Barrier {
    n: usize,
    joining: Duration,
    members: OnceLock<Result<Members>>,
    /// The process that creates the members.
    maker: Found<ProcessToken>,
    arrivals: OnLines<Arrivals>,
    phases: OnLines<Phases>,
}

/// Data that all threads write or watch, on its own cache lines.
#[repr(align(128))]
struct OnLines<T>(T);

/// The word that the threads watch.
struct Phases {
    completed: AtomicU64,
    waiting: Found<Waiting>,
}

/// Where the threads sleep.
struct Waiting {
    event: Event,
    /// `None` if there are too few processors for the threads.
    apart: Option<Apart>,
}

/// The result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Returns whether the thread is the leader: one thread of each phase is.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl Barrier {
    /// Creates a barrier for `n` threads. If `n` is 0 or 1, a wait returns at once.
    #[must_use]
    pub const fn new(n: usize) -> Self {
        Self {
            n,
            joining: JOINING,
            members: OnceLock::new(),
            maker: Found::new(),
            arrivals: OnLines(Arrivals::new(if n < MOST { n } else { MOST })),
            phases: OnLines(Phases { completed: AtomicU64::new(0), waiting: Found::new() }),
        }
    }

    /// Sets how long a [`BarrierMember`] waits for members that have not joined, before the waits
    /// of all members fail. The default is 10 s. The time starts again whenever a member joins for
    /// the first time.
    #[must_use]
    pub const fn join_timeout(mut self, limit: Duration) -> Self {
        self.joining = limit;
        self
    }

    /// Waits until `n` threads have called this. The last one is the leader. The barrier can be
    /// used again immediately. All that the threads did before their calls happens before all that
    /// they do after them, so relaxed atomics suffice for data between two barriers.
    ///
    /// Any thread may wait: it spins, then yields, then sleeps. If two of the threads use one
    /// processor, one of them moves to another that its affinity mask allows. Nothing detects threads
    /// that never arrive.
    ///
    /// # Panics
    /// When `n` is more than 65535.
    pub fn wait(&self) -> BarrierWaitResult {
        let arrival = self.arrive();
        if !arrival.is_last {
            let past = self.wait_past(arrival, None);
            past.expect("a wait without a limit ends when its phase does");
        }
        BarrierWaitResult(arrival.is_last)
    }

    /// As [`Barrier::wait`], for at most `limit`. On a time-out the thread is no longer counted,
    /// and this returns `None`.
    ///
    /// # Panics
    /// As [`Barrier::wait`].
    ///
    /// ```
    /// use consort::Barrier;
    /// use std::time::Duration;
    ///
    /// let barrier = Barrier::new(2);
    /// assert!(barrier.wait_timeout(Duration::from_millis(1)).is_none());
    /// ```
    pub fn wait_timeout(&self, limit: Duration) -> Option<BarrierWaitResult> {
        let arrival = self.arrive();
        if !arrival.is_last {
            let past = self.wait_past(arrival, Some(limit));
            // The phase may have ended since the last check.
            if past.is_none() && self.arrivals.0.withdraw(arrival.phase) {
                return None;
            }
        }
        Some(BarrierWaitResult(arrival.is_last))
    }

    /// Arrives without waiting, and leaves the barrier: all later phases need one thread less. A
    /// phase that this call completes has no leader. For threads that [wait](Self::wait); members
    /// use [`BarrierMember::arrive_and_drop`].
    ///
    /// # Panics
    /// As [`Barrier::wait`].
    pub fn arrive_and_drop(&self) {
        self.check();
        if self.arrivals.0.drop_out() {
            self.release(self.n);
        }
    }

    /// Counts the calling thread. The last one ends the phase and leads it.
    #[inline]
    fn arrive(&self) -> Arrival {
        self.check();
        let arrival = self.arrivals.0.arrive();
        if arrival.is_last {
            self.arrivals.0.end_phase(arrival);
            self.release(arrival.threads);
        }
        arrival
    }

    fn check(&self) {
        assert!(self.n <= MOST, "at most {MOST} threads can wait at a barrier, not {}", self.n);
    }

    /// Releases the threads of a complete phase.
    fn release(&self, threads: usize) {
        self.phases.0.completed.fetch_add(1, Release); // pairs with the acquire in `past`
        let waiting = self.waiting(threads);
        if waiting.event.may_have_sleepers() {
            self.wake(waiting);
        }
    }

    #[cold]
    fn wake(&self, Waiting { event, apart }: &Waiting) {
        match apart {
            Some(apart) => apart.wake(self.completed(), || event.notify()),
            None => event.notify(),
        }
    }

    /// Waits until the phase of this thread is complete, or for at most `limit`.
    #[inline]
    fn wait_past(&self, arrival: Arrival, limit: Option<Duration>) -> Option<()> {
        let Waiting { event, apart } = self.waiting(arrival.threads);
        let enter = || apart.as_ref()?.enter(self.completed());
        event.wait_entering(limit, || self.past(arrival), enter)
    }

    /// Returns where the threads of a phase of `threads` sleep.
    #[inline]
    fn waiting(&self, threads: usize) -> &Waiting {
        self.phases.0.waiting.get_or_find(|| {
            let processors = Algorithms::here().topology().processors();
            let [threads, processors] =
                [threads, processors].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
            let apart = (threads <= processors).then(Apart::new);
            Waiting { event: Event::new(threads, processors), apart }
        })
    }

    /// Returns the number of phases so far.
    fn completed(&self) -> u64 {
        self.phases.0.completed.load(Relaxed)
    }

    /// Returns `Some` if the phase of this thread is complete.
    #[inline]
    fn past(&self, arrival: Arrival) -> Option<()> {
        // Acquire: pairs with the release in `release`.
        arrival.phase.is_over(self.phases.0.completed.load(Acquire)).then_some(())
    }

    /// Returns the members; the first call creates them.
    fn members(&self) -> Result<&Members> {
        // A child that was forked during the first call would wait for its parent's thread.
        if self.members.get().is_none()
            && !self.maker.get_or_find(ProcessToken::current).is_current()
        {
            return Err(Error::Forked);
        }
        let members = self.members.get_or_init(|| Members::new(self.n, self.joining));
        members.as_ref().map_err(Error::clone)
    }

    /// Makes the calling thread one of the `n` members.
    ///
    /// # Errors
    /// [`LaunchError::JobFull`] when there are `n` members already, or when members have [dropped
    /// out](BarrierMember::arrive_and_drop) and their last phase is over;
    /// [`LaunchError::JoinedAlready`] when the thread is a member; [`LaunchError::NoPes`] and
    /// [`LaunchError::TooManyPes`] when `n` is not possible; the members' error once one has
    /// failed; [`Error::Forked`] in a child that was forked when a thread had called this.
    pub fn join(&self) -> Result<BarrierMember> {
        let members = self.members()?;
        let joined = members.join()?;
        let shared = Arc::clone(&members.shared);
        let place = &shared.places[joined.world().rank().index()];
        let phase = place.phase.load(Acquire); // pairs with the release in `drop`
        let is_over = |place: &Place| (1..=phase).contains(&place.last.load(Relaxed));
        if shared.places.iter().any(is_over) {
            // The others wait only for each other.
            return Err(LaunchError::JobFull { pes: self.n }.into());
        }
        let phase = Cell::new(phase);
        Ok(BarrierMember { team: Cell::new(0), phase, accounted: Cell::new(0), shared, joined })
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}

/// The members of a barrier.
struct Members {
    job: Job,
    shared: Arc<Shared>,
}

/// Data that the members share.
struct Shared {
    /// The number of members that have announced their last phase.
    drops: AtomicU64,
    /// By rank.
    places: Box<[Place]>,
}

/// The published state of one member.
#[derive(Default)]
struct Place {
    /// The number of phases that the member had completed when it left.
    phase: AtomicU64,
    /// The last phase in which the member takes part, from 1 on; 0 as long as it stays.
    last: AtomicU64,
}

impl Members {
    fn new(n: usize, joining: Duration) -> Result<Self> {
        let job = Job::threads(n).heap_bytes(0).join_timeout(joining).build()?;
        let places = (0..n).map(|_| Place::default()).collect();
        Ok(Self { job, shared: Arc::new(Shared { drops: AtomicU64::new(0), places }) })
    }

    /// Joins as the member with the lowest rank that is free and has not dropped out.
    fn join(&self) -> Result<JoinedPe> {
        for (rank, place) in (0..).map(Rank).zip(&self.shared.places) {
            if place.last.load(Relaxed) == 0 {
                match self.job.join_as(rank) {
                    Err(Error::Launch(LaunchError::RankTaken { .. })) => {}
                    // The member has dropped out in the meantime.
                    Ok(_) if place.last.load(Relaxed) != 0 => {}
                    joined => return joined,
                }
            }
        }
        Err(LaunchError::JobFull { pes: self.job.size() }.into())
    }
}

/// One of the `n` members of a barrier, on the thread that [joined](Barrier::join).
///
/// Dropping it makes room for another member, and the others wait for that one. Once a member has
/// dropped out by [`BarrierMember::arrive_and_drop`], no thread can join any more, and dropping a
/// member fails the waits of the remaining ones. If a panic drops it, the waits of all others
/// return [`Error::PeFailed`].
///
/// ```
/// use consort::Barrier;
/// use std::thread;
///
/// let barrier = Barrier::new(2);
/// thread::scope(|scope| {
///     let threads = [(); 2].map(|()| {
///         scope.spawn(|| {
///             let member = barrier.join()?;
///             (0..1000).try_for_each(|_| member.wait().map(drop))
///         })
///     });
///     threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
/// })?;
/// # Ok::<(), consort::Error>(())
/// ```
pub struct BarrierMember {
    joined: JoinedPe,
    /// The number of the remaining members' team; 0 while all remain.
    team: Cell<usize>,
    /// The number of phases so far.
    phase: Cell<u64>,
    /// The number of members that have left the team.
    accounted: Cell<u64>,
    shared: Arc<Shared>,
}

impl BarrierMember {
    /// Waits until all members have called this. One member is the leader; if it drops out in this
    /// phase, there is none.
    ///
    /// # Errors
    /// [`Error::PeFailed`] when a member has panicked; [`Error::TimedOut`] when the barrier has
    /// lacked members for 10 s, or for the time set by [`Barrier::join_timeout`].
    #[inline]
    #[track_caller]
    pub fn wait(&self) -> Result<BarrierWaitResult> {
        let remaining;
        let team = match self.team.get() {
            0 => self.joined.world(),
            number => {
                remaining = self.joined.team(number);
                &remaining
            }
        };
        team.barrier()?;
        self.phase.set(self.phase.get() + 1);
        if self.shared.drops.load(Relaxed) != self.accounted.get() {
            self.go_on_without()?;
        }
        Ok(BarrierWaitResult(team.rank().0 == 0))
    }

    /// As [`BarrierMember::wait`], for at most `limit`: after that, the waits of all members fail.
    ///
    /// # Errors
    /// [`Error::TimedOut`], which names the late members; and as [`BarrierMember::wait`].
    #[track_caller]
    pub fn wait_timeout(&self, limit: Duration) -> Result<BarrierWaitResult> {
        self.joined.with_timeout(limit, || self.wait())
    }

    /// Takes part in this phase, and then leaves the barrier for good: later phases need one member
    /// less. Waits as [`BarrierMember::wait`] does, because members forward each other's messages.
    ///
    /// # Errors
    /// As [`BarrierMember::wait`].
    #[track_caller]
    pub fn arrive_and_drop(self) -> Result<()> {
        self.place().last.store(self.phase.get() + 1, Relaxed);
        self.shared.drops.fetch_add(1, Relaxed);
        // The barrier orders both stores before the loads of members that have left it.
        self.joined.team(self.team.get()).barrier()
    }

    /// Forms a team of the remaining members. All members do this after the same phase.
    #[cold]
    fn go_on_without(&self) -> Result<()> {
        let team = self.joined.team(self.team.get());
        // A member may already have announced that the next phase is its last.
        let is_left = |last: u64| last == 0 || last > self.phase.get();
        let mut members = Vec::new();
        for rank in (0..team.pes()).map(Rank) {
            let place = &self.shared.places[team.world_rank(rank)?.index()];
            if is_left(place.last.load(Relaxed)) {
                members.push(rank);
            }
        }
        if members.len() < team.size() {
            let team = team.join(0, &members)?.expect("this PE is left");
            self.team.set(team.state.number());
            self.accounted.set((self.shared.places.len() - members.len()) as u64);
        }
        Ok(())
    }

    /// Returns the published state of this member.
    fn place(&self) -> &Place {
        &self.shared.places[self.joined.world().rank().index()]
    }
}

impl Drop for BarrierMember {
    fn drop(&mut self) {
        self.place().phase.store(self.phase.get(), Release); // pairs with the acquire in `join`
    }
}

impl fmt::Debug for BarrierMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierMember").field("phase", &self.phase.get()).finish_non_exhaustive()
    }
}
