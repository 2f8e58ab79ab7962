//! A PE's identity in a team, and the state that its calls need.

#![expect(unsafe_code, reason = "declares requirements on its callers")]

use std::{
    cell::{Cell, RefCell, UnsafeCell},
    fmt,
    future::poll_fn,
    marker::PhantomData,
    rc::{Rc, Weak},
    sync::{Arc, atomic::Ordering::Relaxed},
    task::Poll,
    time::{Duration, Instant},
};

use consort_fabric::Rank;

use super::wait_counts::Waits;
use crate::{
    call::{pending_calls::PendingCalls, started::CallContext},
    directory::{blocks::HeapError, group_error::GroupError, groups::GroupKey},
    heap::one_sided::OneSided,
    inbox::line::Line,
    launch::{form::refused, job::Job},
    progress::{
        deadlock::DeadlockDetector,
        engine::{Engine, SCRATCH},
    },
    segment::{origin::Origin, reservation::Segment},
    tally::Tally,
    team::group::Group,
};
use consort_machine::wait::{moves::Moves, spin_budget::SpinBudget};

/// The state that a PE has once for all of its teams.
pub(super) struct Pe {
    /// The PE's rank in the world.
    pub(super) rank: Rank,
    /// Memory for partial results (one half) and incoming messages (the other half) of blocking
    /// calls.
    pub(super) scratch: Segment,
    pub(super) engine: Arc<Engine>,
    /// Callbacks that run while a call waits.
    pub(super) callbacks: RefCell<Vec<Weak<dyn Fn()>>>,
    pub(super) budget: Cell<SpinBudget>,
    /// The moves away from processors on which other PEs waited.
    pub(super) moves: Cell<Moves>,
    pub(super) waits: Cell<Waits>,
    /// How long a wait may last before it fails the job.
    pub(super) limit: Cell<Option<Duration>>,
    pub(super) detector: RefCell<DeadlockDetector>,
    pub(super) shared_handles: Tally,
    /// The teams that this PE has joined by [`Endpoint::join_strided`]: first PE, stride and size.
    strided: RefCell<Vec<(Rank, i32, u32)>>,
}

/// One PE's handle to a team. Stays on its thread.
pub struct Endpoint {
    pub(super) job: Arc<Job>,
    /// The group, or one without memory after the PE has left the team. Only [`Endpoint::leave`]
    /// and [`Endpoint::reuse_for`] replace it.
    pub(super) group: UnsafeCell<Arc<Group>>,
    pub(super) pe: Rc<Pe>,
    pub(super) calls: Cell<u64>,
    /// The number of the next step. Message words carry its low bits.
    pub(super) sequence: Cell<u64>,
    /// A hash of the name numbers of all calls so far.
    pub(super) rolled: Cell<u64>,
    pub(super) allocations: Cell<u64>,
    /// The number of teams formed from this one.
    pub(super) teams: Cell<u64>,
    pub(super) pending_calls: Arc<PendingCalls>,
    /// The state that nonblocking calls share. The first such call makes it, and it is kept until
    /// the PE leaves the group.
    pub(super) context: RefCell<Option<Arc<CallContext>>>,
    /// The number of calls of `progress` outside of any wait.
    pub(super) visits: Cell<u32>,
    /// When this PE last compared calls with its peers outside of a wait.
    pub(super) glanced: Cell<Option<Instant>>,
    pub(super) stays_here: PhantomData<*const ()>,
}

impl Endpoint {
    /// Creates the endpoint of PE `rank` in the world team. Only the PE's own thread may call this.
    ///
    /// # Errors
    /// When there is no memory for partial results.
    ///
    /// # Panics
    /// When the PE already has an endpoint, or the job has no such PE.
    pub fn new(job: Arc<Job>, rank: Rank) -> Result<Self, HeapError> {
        let before = job.states[rank.index()].has_endpoint.swap(1, Relaxed);
        assert!(before == 0, "a PE has one endpoint, which knows what the PE is accessing");
        let ranks = (0..job.config().pes).map(Rank).collect();
        let world = Group::new(&job, job.world, ranks, rank).map_err(|_| HeapError::Failed)?;
        let bytes = world.memory.geometry.lines * size_of::<Line>();
        let scratch = Segment::reserve(2 * bytes, Origin::Private, SCRATCH);
        let scratch = scratch.map_err(|reason| refused(job.config(), reason))?;
        let pe = Pe {
            rank,
            scratch,
            engine: Arc::default(),
            callbacks: RefCell::default(),
            budget: Cell::new(SpinBudget::new(job.config().fits())),
            moves: Cell::default(),
            waits: Cell::default(),
            limit: Cell::new(None),
            detector: RefCell::default(),
            shared_handles: Tally::default(),
            strided: RefCell::default(),
        };
        if job.has_far() {
            let served = Arc::clone(&job);
            let serves = poll_fn(move |_| {
                served.serve();
                Poll::Pending
            });
            // SAFETY: the future owns the job, which any thread may use. It keeps the job alive
            // until `Engine::clear`, or the PE's end.
            unsafe { pe.engine.launch(Box::pin(serves), None) };
        }
        Ok(Self::of(job, Rc::new(pe), world))
    }

    fn of(job: Arc<Job>, pe: Rc<Pe>, group: Group) -> Self {
        Self {
            group: UnsafeCell::new(Arc::new(group)),
            pe,
            calls: Cell::new(0),
            sequence: Cell::new(job.config().first_step),
            job,
            rolled: Cell::new(0),
            allocations: Cell::new(0),
            teams: Cell::new(0),
            pending_calls: Arc::default(),
            context: RefCell::default(),
            visits: Cell::new(0),
            glanced: Cell::new(None),
            stays_here: PhantomData,
        }
    }

    /// Returns the job.
    #[inline]
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// Returns the state that the PEs of the team share.
    #[inline(always)]
    pub fn group(&self) -> &Arc<Group> {
        // SAFETY: only `leave` and `reuse_for` replace the group, and their callers ensure that
        // nothing borrows it.
        unsafe { &*self.group.get() }
    }

    /// Returns the PE's rank in the team.
    #[inline(always)]
    pub fn rank(&self) -> Rank {
        self.group().rank()
    }

    /// Returns the number of PEs in the team.
    #[inline(always)]
    pub fn size(&self) -> u32 {
        u32::try_from(self.group().size()).unwrap_or(u32::MAX)
    }

    /// Returns the PE's rank in the world.
    #[inline]
    pub fn rank_in_world(&self) -> Rank {
        self.pe.rank
    }

    /// Returns what the PE's waits have done so far, in all its teams.
    pub fn waits(&self) -> Waits {
        self.pe.waits.get()
    }

    /// Returns the number of calls made so far.
    #[inline(always)]
    pub fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// Returns the key of this PE's next allocation. It is the same on the PE's peers.
    pub(crate) fn next_allocation(&self) -> (u64, u64) {
        let number = self.allocations.replace(self.allocations.get() + 1);
        (self.group().number(), number)
    }

    /// Forms new teams from this team. Returns this PE's group in the team of colour `color`, whose
    /// members are listed by their ranks in this team, in the order of their new ranks. Every PE of
    /// this team must call this, in the same order of formations. PEs with other colours form other
    /// teams. Returns `None` on a PE that is not in the list.
    ///
    /// # Errors
    /// When there is no memory for another team.
    pub fn join(&self, color: u32, members: &[Rank]) -> Result<Option<Group>, GroupError> {
        let made = self.teams.replace(self.teams.get() + 1);
        let Some(at) = members.iter().position(|&rank| rank == self.rank()) else {
            return Ok(None);
        };
        let group = self.group();
        let ranks = members.iter().map(|&rank| group.in_world(rank)).collect();
        let rank = Rank(u32::try_from(at).unwrap_or(u32::MAX));
        let forming = GroupKey::Color(group.number(), made, color);
        Group::join(&self.job, forming, ranks, rank).map(Some)
    }

    /// Forms a team of `pes` PEs of the world: `first`, `first + stride` and so on, in this order.
    /// The stride may be negative. Only these PEs call this, each once until all PEs
    /// [forget](Self::forget_strided) the team. A PE may form such teams in any order. Returns
    /// `None` on a PE that is not a member.
    ///
    /// # Errors
    /// When there is no memory for another team.
    ///
    /// # Panics
    /// When a member is not a PE of the world, or this PE has joined the team before.
    pub fn join_strided(
        &self,
        first: Rank,
        stride: i32,
        pes: u32,
    ) -> Result<Option<Group>, GroupError> {
        let member = |at: u32| {
            let rank = i64::from(first.0) + i64::from(at) * i64::from(stride);
            let rank = u32::try_from(rank).ok().filter(|&rank| rank < self.job.config().pes);
            Rank(rank.expect("a team is of PEs of the job"))
        };
        let ranks: Box<[Rank]> = (0..pes).map(member).collect();
        let Some(at) = ranks.iter().position(|&rank| rank == self.pe.rank) else {
            return Ok(None);
        };
        // With two such groups, a member could mistake the words of one for those of the other.
        let team = (first, stride, pes);
        let is_first = !self.pe.strided.borrow().contains(&team);
        assert!(is_first, "a PE joins such a team once");
        let rank = Rank(u32::try_from(at).unwrap_or(u32::MAX));
        let forming = GroupKey::Strided(first, stride.cast_unsigned());
        let joined = Group::join(&self.job, forming, ranks, rank)?;
        self.pe.strided.borrow_mut().push(team);
        Ok(Some(joined))
    }

    /// Forgets the teams of [`Endpoint::join_strided`], so that they may be formed again. All their
    /// members must have joined and left them.
    pub fn forget_strided(&self) {
        self.pe.strided.borrow_mut().clear();
    }

    /// Returns this PE's endpoint in a team that the PE has joined.
    #[must_use]
    pub fn end_of(&self, group: Group) -> Self {
        Self::of(Arc::clone(&self.job), Rc::clone(&self.pe), group)
    }

    /// Leaves the team after the last call, and drops this PE's reference to the team's memory. The
    /// memory is freed when all PEs have left.
    ///
    /// # Safety
    /// No call of this endpoint and no borrow of its group is alive.
    pub unsafe fn leave(&self) {
        // An endpoint without a team still reports the team's size.
        let ranks = self.group().ranks().into();
        let nothing = Group::none(&self.job, ranks, self.rank());
        // SAFETY: the caller's promise.
        unsafe { self.replace_group(nothing) };
        self.context.take();
        self.calls.set(0); // so that `check_peers` compares nothing
    }

    /// Reuses this endpoint for another team, after it has left its own.
    ///
    /// # Safety
    /// Same as [`Endpoint::leave`].
    pub unsafe fn reuse_for(&self, group: Group) {
        self.sequence.set(self.job.config().first_step);
        self.rolled.set(0);
        self.allocations.set(0);
        self.teams.set(0);
        self.visits.set(0);
        self.glanced.set(None);
        // SAFETY: the caller's promise.
        unsafe { self.replace_group(group) };
    }

    /// # Safety
    /// Same as [`Endpoint::leave`].
    unsafe fn replace_group(&self, group: Group) {
        // SAFETY: nothing borrows the group, by the caller's promise, and an endpoint stays on its
        // thread.
        let place = unsafe { &mut *self.group.get() };
        let before = std::mem::replace(place, Arc::new(group));
        drop(before); // may run other code, but nothing is borrowed here
    }

    /// Returns the engine that drives this PE's operations.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.pe.engine
    }

    /// Returns this PE's one-sided operations, which name PEs by their ranks in the world.
    #[inline]
    pub fn one_sided(&self) -> OneSided<'_> {
        OneSided::new(&self.job, self.pe.rank)
    }

    /// Returns the count of handles on this PE's symmetric memory that other threads may hold.
    pub fn shared_handles(&self) -> &Tally {
        &self.pe.shared_handles
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("rank", &self.rank()).finish_non_exhaustive()
    }
}
